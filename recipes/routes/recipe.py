"""The recipe `routes`: learns the weights of `LearntRoute` from a run of several pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from leporello.analysis.finished import FinishedRun
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import write_json
from leporello.core.protocols import Positive
from leporello.core.records import JSON
from leporello.engine.task_examples import examples_of
from leporello.text.word_classifier import WordClassifier, word_features

_DIGITS = 5


@dataclass(frozen=True)
class RouteSettings:
    """Settings; relative paths count from their file."""

    run: Path  # directory of a finished run of all pipelines on the train split of the task
    task: str  # name of the task
    # Names of the pipelines, in the order of the routes; the first wins ties.
    pipelines: tuple[str, ...]
    metric: str = ""  # metric that compares the pipelines; if empty, the task's first
    seen: Positive = 2  # minimum number of questions with a word
    strength: float = 1.0  # weight of the data, relative to the prior that words have no influence

    def __post_init__(self) -> None:
        if len(set(self.pipelines)) < 2 or len(set(self.pipelines)) < len(self.pipelines):  # noqa: PLR2004
            raise ValueError("pipelines needs at least two different names, without repetitions")
        if self.strength <= 0:
            raise ValueError("strength must be above 0")


SETTINGS = RouteSettings
MODEL = "routes/routes.json"
PARAMETER = "combiner.model"


def train(settings: RouteSettings, folder: Path) -> dict[str, Any]:
    """Writes `routes.json`; returns the scores of pipelines and routes on its questions."""
    rows = [*_scores(settings)]
    informative = [(question, scores) for question, scores in rows if max(scores) > min(scores)]
    best = [max(range(len(scores)), key=scores.__getitem__) for _, scores in informative]
    if len({*best}) < 2:  # noqa: PLR2004
        raise UserError(
            f"{settings.run}: there is nothing to route, because one pipeline is best for all of"
            f" {len(rows):,} questions, or all pipelines have equal scores"
        )
    gains = [max(scores) - fmean(scores) for _, scores in informative]
    learnt = fit([q for q, _ in informative], best, gains, len(settings.pipelines), settings)
    folder.mkdir(parents=True)
    words: JSON = {word: [*row] for word, row in learnt.words.items()}
    write_json(folder / "routes.json", {"bias": [*learnt.bias], "words": words})
    routed = [scores[learnt.class_of(question)] for question, scores in rows]
    single = {
        name: round(fmean(scores[n] for _, scores in rows), 2)
        for n, name in enumerate(settings.pipelines)
    }
    return {
        "questions": len(rows),
        "words": len(learnt.words),
        "learnt": {**single, "routed": round(fmean(routed), 2)},
    }


def fit(
    questions: Sequence[str],
    best: Sequence[int],
    gains: Sequence[float],
    routes: int,
    settings: RouteSettings,
) -> WordClassifier:
    """Returns word weights; the weight of a question is the gain of its best route."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = TfidfVectorizer(analyzer=word_features, min_df=settings.seen)
    try:
        columns = vectorizer.fit_transform(questions)
    except ValueError:
        raise UserError(
            f"no word occurs in {settings.seen} questions: use more questions, or a lower `seen`"
        ) from None
    weights = np.array(gains) / np.mean(gains)
    model = LogisticRegression(C=settings.strength, max_iter=1000)
    model.fit(columns, best, sample_weight=weights)
    # For two classes, the model has only weights of the second; routes that were never best have
    # no weights.
    is_binary = len(model.classes_) == 2  # noqa: PLR2004
    coefficients = np.vstack([0 * model.coef_, model.coef_]) if is_binary else model.coef_
    bias = np.concatenate([[0.0], model.intercept_]) if is_binary else model.intercept_
    all_bias, all_coefficients = np.full(routes, -1e3), np.zeros((routes, columns.shape[1]))
    all_bias[model.classes_], all_coefficients[model.classes_] = bias, coefficients
    table = np.vstack([vectorizer.idf_, all_coefficients]).T.round(_DIGITS)
    words = {
        str(word): tuple(map(float, table[place]))
        for word, place in sorted(vectorizer.vocabulary_.items())
    }
    return WordClassifier(tuple(map(float, all_bias.round(_DIGITS))), words)


def _scores(settings: RouteSettings) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yields each question with the score of each pipeline."""
    by_task = FinishedRun.at(settings.run).by_task
    if settings.task not in by_task:
        hint = did_you_mean(settings.task, by_task)
        raise UserError(f"the run has no task {settings.task!r}{hint}")
    jobs = {job.pipeline: job for job in by_task[settings.task]}
    for pipeline in settings.pipelines:
        if pipeline not in jobs:
            raise UserError(f"the run has no results of pipeline {pipeline!r} on {settings.task!r}")
    first = jobs[settings.pipelines[0]]
    name = settings.metric or next(iter(first.metrics))
    if name not in first.metrics:
        raise UserError(f"the task has no metric {name!r}{did_you_mean(name, first.metrics)}")
    metric = first.metrics[name]
    by_pipeline = [
        {row.id: row.statistics.get(name) for row in jobs[pipeline].files.statistics()}
        for pipeline in settings.pipelines
    ]
    for example in examples_of(first.source, settings.task):
        statistics = [s for rows in by_pipeline if (s := rows.get(example.id)) is not None]
        if example.question and len(statistics) == len(by_pipeline):
            yield example.question, tuple(map(metric.score, statistics))
