"""The recipe from a run of several pipelines to the weights of `LearntRoute`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from leporello.config import load_config
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import write_json
from leporello.core.protocols import Positive
from leporello.core.records import JSON
from leporello.engine.task_examples import examples_of
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.text.word_classifier import WordClassifier, word_features

_DIGITS = 5


@dataclass(frozen=True)
class RouteSettings:
    """Settings; relative paths count from their file.

    Attributes:
        run: Directory of a finished run of all pipelines on the task, its train side.
        task: Name of the task.
        pipelines: Names of the pipelines, in the order of the routes; the first is taken where it
            is as good as others.
        metric: Metric by which they are compared; the task's first if empty.
        seen: Number of questions that a word must stand in.
        strength: Weight of the data against the prior that no word tells anything.
    """

    run: Path
    task: str
    pipelines: tuple[str, ...]
    metric: str = ""
    seen: Positive = 2
    strength: float = 1.0

    def __post_init__(self) -> None:
        if len(set(self.pipelines)) < 2 or len(set(self.pipelines)) < len(self.pipelines):  # noqa: PLR2004
            raise ValueError("pipelines needs two names at least, and none twice")
        if self.strength <= 0:
            raise ValueError("strength must be above 0")


SETTINGS = RouteSettings
MODEL = "routes/routes.json"
PARAMETER = "combiner.model"


def train(settings: RouteSettings, folder: Path) -> dict[str, Any]:
    """Writes `routes.json`, and returns what it came to on the questions that it learnt."""
    rows = [*_scores(settings)]
    told = [(question, scores) for question, scores in rows if max(scores) > min(scores)]
    best = [max(range(len(scores)), key=scores.__getitem__) for _, scores in told]
    if len({*best}) < 2:  # noqa: PLR2004
        raise UserError(
            f"{settings.run}: of {len(rows):,} questions none or all are answered best by one of"
            " the pipelines: there is nothing to route"
        )
    gains = [max(scores) - fmean(scores) for _, scores in told]
    learnt = fit([q for q, _ in told], best, gains, len(settings.pipelines), settings)
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
    """Returns the weights of words; a question weighs as much as its best route gains."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = TfidfVectorizer(analyzer=word_features, min_df=settings.seen)
    try:
        columns = vectorizer.fit_transform(questions)
    except ValueError:
        raise UserError(f"no word stands in {settings.seen} questions: there are too few") from None
    weights = np.array(gains) / np.mean(gains)
    model = LogisticRegression(C=settings.strength, max_iter=1000)
    model.fit(columns, best, sample_weight=weights)
    # Of two classes it has the weights of the second alone; one that was never best has none.
    two = len(model.classes_) == 2  # noqa: PLR2004
    coefficients = np.vstack([0 * model.coef_, model.coef_]) if two else model.coef_
    bias = np.concatenate([[0.0], model.intercept_]) if two else model.intercept_
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
    directory = RunDirectory(settings.run)
    if not directory.config.exists():
        raise UserError(f"{settings.run} holds no run")
    config = load_config([directory.config])
    if settings.task not in config.tasks:
        raise UserError(
            f"the run has no task {settings.task!r}{did_you_mean(settings.task, config.tasks)}"
        )
    source = config.tasks[settings.task].spec.build()
    metrics = metrics_of(config.tasks[settings.task].metrics_of(source))
    name = settings.metric or next(iter(metrics))
    if name not in metrics:
        raise UserError(f"the task has no metric {name!r}{did_you_mean(name, metrics)}")
    by_pipeline = []
    for pipeline in settings.pipelines:
        if not directory.results(pipeline, settings.task).exists():
            raise UserError(f"the run has nothing of pipeline {pipeline!r} on {settings.task!r}")
        rows = JobFiles(directory, pipeline, settings.task).statistics()
        by_pipeline.append({row.id: row.statistics.get(name) for row in rows})
    for example in examples_of(source, settings.task):
        found = [one for told in by_pipeline if (one := told.get(example.id)) is not None]
        if example.question and len(found) == len(by_pipeline):
            yield example.question, tuple(metrics[name].score(one) for one in found)
