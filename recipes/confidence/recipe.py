"""The recipe `confidence`: fits the probability of an answer to the scores of its candidates."""

from __future__ import annotations

import json
import random
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from leporello.chunkers import Paragraphs
from leporello.core.calls.answers import certainty
from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import Document
from leporello.jobs.results import selectivity
from leporello.metrics.squad import best_f1
from leporello.models.locate import locate
from leporello.readers.embedded.answers import Confidence, Signals, answer_all
from leporello.readers.embedded.encoder import Encoder
from leporello.retrievers import BM25
from leporello.text.squad import normalise
from leporello.training.model_card import RECORD, new_folder
from recipes.answers.questions import Question, read_questions
from recipes.settings import exclusion

_FOLDS = 5
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
    # Folder with `answers`, the encoder whose answers are judged.
    model: ModelSource = "leporello-en"
    # Python file with `is_apart(text)`, which is run: questions are left out if it returns true for
    # their passage.
    exclude: Path | None = None
    # Number of passages of a document; other passages of the set fill shorter ones.
    passages: Positive = 50
    words: Positive = 100  # maximum number of words per chunk
    hits: Positive = 12  # number of chunks that the reader receives
    seed: Count = 1  # seed of draws


SETTINGS = ConfidenceSettings


@dataclass(frozen=True)
class Judged:
    """An answer whose correctness is known."""

    source: str  # name of the data set
    document: str  # name of the document
    signals: Signals  # signals of the answer
    f1: float  # F1 of the answer, 0 to 1


def run(settings: ConfidenceSettings, folder: Path, *, update: bool = False) -> dict[str, Any]:
    """Fits a confidence and writes a copy of the model with it; returns the record."""
    del update  # the command has checked that the folder is free
    judged = [*judge(settings)]
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


def judge(settings: ConfidenceSettings) -> Iterator[Judged]:
    """Yields the reader's answers to the questions, which it finds in complete documents."""
    is_apart = exclusion(settings.exclude)
    questions = [q for path in settings.questions for q in read_questions(path)]
    by_document, by_set = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for question in questions:
        by_document[question.document].add(question.passage)
        by_set[question.source].add(question.passage)
    others = {source: sorted(passages) for source, passages in by_set.items()}
    encoder = Encoder(Path(locate(settings.model)) / "answers")
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
        yield from _judged(encoder, question, document, settings)


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


def _judged(
    encoder: Encoder, question: Question, document: Document, settings: ConfidenceSettings
) -> Iterator[Judged]:
    chunks = [document.chunk(s.start, s.end) for s in Paragraphs(settings.words).chunk(document)]
    [hits] = BM25(k=settings.hits).retrieve([question.text], chunks)
    texts = [hit.chunk.text for hit in hits]
    [answered] = answer_all(encoder, [(question.text, texts)])
    if answered.candidates:
        references = [question.passage[start:end] for start, end in question.answers]
        yield Judged(
            question.source,
            question.document,
            Signals.of(answered.candidates, answered.odds),
            best_f1(normalise, answered.candidates[0].text, references),
        )


def fit(judged: Sequence[Judged]) -> Confidence:
    """Returns the logistic regression of F1 on the signals; raises UserError if all are equal."""
    from sklearn.linear_model import LogisticRegression

    signals = np.array([tuple(asdict(answer.signals).values()) for answer in judged])
    f1 = np.array([answer.f1 for answer in judged])
    if not 0 < f1.mean() < 1:
        raise UserError("a confidence needs answers that are right and answers that are wrong")
    mean, spread = signals.mean(axis=0), signals.std(axis=0) + 1e-9
    scaled = (signals - mean) / spread
    # Each answer twice, with weights: scikit-learn takes labels, not shares.
    labels, weights = np.repeat([1, 0], len(f1)), np.concatenate([f1, 1 - f1])
    model = LogisticRegression(C=_STRENGTH)
    model.fit(np.concatenate([scaled, scaled]), labels, sample_weight=weights)
    slopes: NDArray[np.float64] = model.coef_[0] / spread
    offset = float(model.intercept_[0] - slopes @ mean)
    return Confidence(*(round(float(number), 4) for number in (*slopes, offset)))


def validate(judged: Sequence[Judged]) -> dict[str, float]:
    """Returns the error and the AUC of confidences that were fitted to other documents.

    Returns:
        `ece`, as `leporello.jobs.results.selectivity` computes it; `auc`, the probability that a
        right answer has a higher confidence than a wrong one; `sure`, the mean F1 of the answers
        with a confidence of at least 0.85, and `sure_share`, their share.
    """
    from sklearn.metrics import roc_auc_score

    names = sorted({answer.document for answer in judged})
    folds = {name: number % _FOLDS for number, name in enumerate(names)}
    rows: list[tuple[float, float]] = []
    for fold in range(_FOLDS):
        confidence = fit([answer for answer in judged if folds[answer.document] != fold])
        held_out = (answer for answer in judged if folds[answer.document] == fold)
        rows += [(confidence.probability(answer.signals), answer.f1) for answer in held_out]
    trusted = [f1 for probability, f1 in rows if certainty(probability) == "sure"]
    probabilities, scores = zip(*rows, strict=True)
    return {
        "ece": selectivity([(probability, _FULL * f1) for probability, f1 in rows])["ece"],
        "auc": float(roc_auc_score([f1 >= _RIGHT for f1 in scores], probabilities)),
        "sure": fmean(trusted) if trusted else 0.0,
        "sure_share": len(trusted) / len(rows),
    }
