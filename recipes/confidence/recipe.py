"""The recipe `confidence`: fits the probability of an answer to the scores of its candidates."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from leporello.config import Pipeline, load_config
from leporello.core.calls.answers import certainty
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import Document, Example, Output, Search
from leporello.jobs.results import selectivity
from leporello.metrics.squad import best_f1
from leporello.models.locate import locate
from leporello.readers.embedded.answers import Confidence, Signals, answer_question
from leporello.readers.embedded.spans import Candidate, SpanHead
from leporello.readers.prompting.template import passage_text
from leporello.text.squad import normalise
from leporello.training.model_card import RECORD, new_folder
from recipes.answers.questions import Question, read_questions
from recipes.settings import exclusion

_STRENGTH = 0.1  # inverse strength of regularisation
_FULL = 100.0  # score of a right answer
_RIGHT = 0.5  # least F1 of an answer that counts as right

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class ConfidenceSettings:
    """Settings; relative paths count from their file."""

    # Files of questions, as for the recipe `answers`. Questions that the encoder was trained on
    # would make it too confident.
    questions: tuple[Path, ...]
    sets: Mapping[str, Count]  # maximum number of questions of each set
    # Config file that declares tasks, and the names of those whose questions are added.
    config: Path | None = None
    tasks: tuple[str, ...] = ()
    # Folder with `answers`, the encoder whose answers are judged.
    model: ModelSource = "leporello-en"
    # Python file with `is_apart(text)`, which is run: questions are left out if it returns true for
    # their passage.
    exclude: Path | None = None
    # Number of passages of a document; other passages of the set fill shorter ones.
    passages: Positive = 50
    seed: Count = 1  # seed of draws


SETTINGS = ConfidenceSettings


@dataclass(frozen=True)
class Judged:
    """An answer whose correctness is known."""

    source: str  # name of the data set or task
    steps: tuple[Signals, ...]  # signals of the answers to nested questions, then of the answer
    f1: float  # F1 of the answer, 0 to 1


def run(settings: ConfidenceSettings, folder: Path, *, update: bool = False) -> dict[str, Any]:
    """Fits a confidence and writes a copy of the model with it; returns the record."""
    del update  # the command has checked that the folder is free
    encoder = SpanHead(Path(locate(settings.model)) / "answers")
    stages = load_config().select(["default"])[0].build()
    judged = [*judge(encoder, stages, settings), *judge_tasks(encoder, stages, settings)]
    record: dict[str, Any] = {
        "recipe": "confidence",
        "answers": len(judged),
        "confidence": asdict(fit(judged)),
        "validation": validate(judged),
    }
    with new_folder(folder) as out:
        shutil.copytree(Path(locate(settings.model)) / "answers", out / "answers")
        config = out / "answers" / "config.json"
        values = json.loads(config.read_text(encoding="utf-8"))
        write_json(config, {**values, "confidence": record["confidence"]})
        write_json(out / RECORD, record)
    return record


def judge(encoder: SpanHead, stages: Pipeline, settings: ConfidenceSettings) -> Iterator[Judged]:
    """Yields answers to the questions of the sets, from documents of several passages."""
    is_apart = exclusion(settings.exclude)
    questions = [q for path in settings.questions for q in read_questions(path)]
    by_document, by_set = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for question in questions:
        by_document[question.document].add(question.passage)
        by_set[question.source].add(question.passage)
    others = {source: sorted(passages) for source, passages in by_set.items()}
    for number, question in enumerate(_drawn(questions, settings)):
        if is_apart(question.passage):
            continue
        rng = random.Random(f"{settings.seed}/{number}")
        passages = sorted(by_document[question.document] - {question.passage})
        passages = [question.passage, *_sample(rng, passages, settings.passages - 1)]
        room = settings.passages - len(passages)
        passages = [*dict.fromkeys(passages + _sample(rng, others[question.source], room))]
        rng.shuffle(passages)
        document = Document(question.document, "\n\n".join(passages))
        references = tuple(question.passage[start:end] for start, end in question.answers)
        example = Example(str(number), document, question=question.text, references=references)
        yield from _judged(encoder, stages, question.source, example)


def judge_tasks(
    encoder: SpanHead, stages: Pipeline, settings: ConfidenceSettings
) -> Iterator[Judged]:
    """Yields answers to the questions of the tasks."""
    if not settings.tasks:
        return
    config = load_config([settings.config] if settings.config else [])
    for task in config.tasks_named(settings.tasks):
        for example in task.spec.build().examples():
            if example.references and not example.fault:
                yield from _judged(encoder, stages, task.name, example)


def _drawn(questions: Iterable[Question], settings: ConfidenceSettings) -> Iterator[Question]:
    """Yields questions with an answer in their passage, at most so many of each set."""
    by_set = defaultdict[str, list[Question]](list)
    for question in questions:
        if question.answers:
            by_set[question.source].append(question)
    for source, count in settings.sets.items():
        if source not in by_set:
            raise UserError(f"no file has answered questions of the set {source!r}")
        yield from _sample(random.Random(settings.seed), by_set[source], count)


def _sample(rng: random.Random, items: Sequence[_Item], count: int) -> list[_Item]:
    return rng.sample(items, min(count, len(items)))


def _judged(encoder: SpanHead, stages: Pipeline, source: str, example: Example) -> Iterator[Judged]:
    reads = _reads(encoder, stages, example)
    last, _ = reads[-1]
    if last == example.question:  # not answered in steps
        reads = reads[-1:]
    if all(candidates for _, candidates in reads):
        f1 = best_f1(normalise, reads[-1][1][0].text, example.references)
        yield Judged(source, tuple(Signals.of(candidates) for _, candidates in reads), f1)


def _reads(
    encoder: SpanHead, stages: Pipeline, example: Example
) -> list[tuple[str, Sequence[Candidate]]]:
    """Returns the questions that a pipeline asks for an example, and the answers to each."""
    chunks = divide(stages.chunker, example.document)
    [hits] = retrieve(stages.retriever, [example], chunks)
    combination = stages.combiner.combine(example, hits)
    replies: list[Any] | None = None
    reads: list[tuple[str, Sequence[Candidate]]] = []
    while True:
        try:
            [request] = combination.send(replies)
        except StopIteration:
            return reads
        if isinstance(request, Search):
            asking = replace(example, question=request.question)
            replies = retrieve(stages.retriever, [asking], chunks)
            continue
        passages = [passage_text(passage) for passage in request.passages]
        answered = answer_question(encoder, request.question, passages)
        reads.append((request.question, answered.candidates))
        best = next(iter(answered.candidates), None)
        replies = [Output(best.text, best.score) if best else Output("", -math.inf)]


def fit(judged: Sequence[Judged]) -> Confidence:
    """Returns the logistic regression of F1 on the signals; sets have equal weights.

    Raises UserError if all answers are right, or all are wrong.
    """
    from sklearn.linear_model import LogisticRegression

    signals = np.array([tuple(asdict(answer.steps[-1]).values()) for answer in judged])
    f1 = np.array([answer.f1 for answer in judged])
    if not 0 < f1.sum() < len(f1):
        raise UserError(
            "a confidence needs answers that are right, and answers that are wrong, "
            "from at least two sets or tasks"
        )
    counts = Counter(answer.source for answer in judged)
    shares = np.array([len(f1) / len(counts) / counts[answer.source] for answer in judged])
    mean, spread = signals.mean(axis=0), signals.std(axis=0) + 1e-9
    scaled = (signals - mean) / spread
    # Each answer twice, with weights: scikit-learn takes labels, not shares.
    labels = np.repeat([1, 0], len(f1))
    weights = np.concatenate([f1 * shares, (1 - f1) * shares])
    model = LogisticRegression(C=_STRENGTH)
    model.fit(np.concatenate([scaled, scaled]), labels, sample_weight=weights)
    slopes: NDArray[np.float64] = model.coef_[0] / spread
    offset = float(model.intercept_[0] - slopes @ mean)
    return Confidence(*(round(float(number), 4) for number in (*slopes, offset)))


def validate(judged: Sequence[Judged]) -> dict[str, float]:
    """Returns the error and the AUC of confidences that were fitted to all other sets and tasks.

    Returns:
        `ece`, as `leporello.jobs.results.selectivity` computes it; `auc`, the probability that a
        right answer has a higher confidence than a wrong one; `sure`, the mean F1 of the answers
        with a confidence of at least 0.85, and `sure_share`, their share; then `ece` and `auc` of
        each set and task.
    """
    rows: dict[str, list[tuple[float, float]]] = {}
    for source in sorted({answer.source for answer in judged}):
        confidence = fit([answer for answer in judged if answer.source != source])
        rows[source] = [
            (fmean(map(confidence.probability, answer.steps)), answer.f1)  # as `NestedQuestions`
            for answer in judged
            if answer.source == source
        ]
    everything = [*chain.from_iterable(rows.values())]
    trusted = [f1 for probability, f1 in everything if certainty(probability) == "sure"]
    scores = _scores(everything, "")
    scores["sure"] = fmean(trusted) if trusted else 0.0
    scores["sure_share"] = len(trusted) / len(everything)
    for source, pairs in rows.items():
        scores |= _scores(pairs, f" of {source}")
    return scores


def _scores(rows: Sequence[tuple[float, float]], suffix: str) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    scores = {f"ece{suffix}": selectivity([(p, _FULL * f1) for p, f1 in rows])["ece"]}
    probabilities, f1 = zip(*rows, strict=True)
    right = [value >= _RIGHT for value in f1]
    if 0 < sum(right) < len(right):
        scores[f"auc{suffix}"] = float(roc_auc_score(right, probabilities))
    return scores
