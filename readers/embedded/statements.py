"""Judges of statements: passages support a statement, contradict it, or do neither."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leporello.models.weights import ModelFolder, unpack
from leporello.readers.embedded.spans import Candidate, Decision, SpanHead, softmax
from leporello.text.english.terms import clause_spans, clause_vectors, nearest, strongest
from leporello.text.squad import normalise

FEATURES = 3  # of a statement that is not in the training data
_READ = 3  # clauses that the encoder reads with such a statement
_NAMES = (
    {"not mentioned", "neutral", "neither", "unknown", "not enough info", "not enough information"},
    {"entailment", "entailed", "supported", "supports"},
    {"contradiction", "contradicted", "refuted", "refutes"},
)
_NEGATION = re.compile(r"\b(?:not?|never|none|nothing|neither|nor|without|cannot)\b|n['’]t\b", re.I)
Floats = NDArray[np.float64]
_NEAREST = 5  # passages that are read with a claim
_CACHED = 5000  # clauses whose scores are kept


def label_order(choices: Sequence[str]) -> tuple[int, int, int] | None:
    """Returns the indices of neither, support and contradiction among choices, if all are there."""
    plain = [" ".join(re.findall(r"[a-z]+", choice.lower())) for choice in choices]
    places = [[i for i, name in enumerate(plain) if name in names] for names in _NAMES]
    if len(choices) != len(_NAMES) or any(len(place) != 1 for place in places):
        return None
    (neither,), (support,), (contradiction,) = places
    return neither, support, contradiction


class StatementJudge:
    """Judges statements on contracts by weights of a recipe, or new ones with a head."""

    def __init__(self, path: Path, head: SpanHead) -> None:
        folder = ModelFolder(path)
        config = folder.config()
        weights = unpack(folder.checked("weights.safetensors"))
        self._size: int = config["size"]
        self._columns = {normalise(text): i for i, text in enumerate(config["statements"])}
        count, labels = len(self._columns), len(_NAMES)
        self._clauses, self._bias = weights["clauses"], weights["bias"]
        self._labels = weights["labels"].reshape(count, labels, -1)
        self._general = weights["general"].reshape(labels, -1)
        self._head = head
        self._rows: dict[str, Floats] = {}  # scores by text of a clause

    def knows(self, statement: str) -> bool:
        """Returns whether a statement is in the training data."""
        return normalise(statement) in self._columns

    def judge(self, statement: str, passages: Sequence[str]) -> Decision:
        """Returns probabilities of neither, support and contradiction, and the decisive clause."""
        clauses = _clauses(passages)
        texts = [clause.text for clause in clauses]
        column = self._columns.get(normalise(statement))
        if column is None:
            features, place = observed(self._head, statement, texts)
            weights = self._general
        else:
            pair = self._scores(texts)[:, [column, column + len(self._columns)]]
            features, place = strongest(pair), int(pair.max(axis=1).argmax()) if texts else None
            weights = self._labels[column]
        probabilities = softmax(weights[:, 0] + weights[:, 1:] @ features)
        return Decision(probabilities, None if place is None else clauses[place])

    def _scores(self, texts: Sequence[str]) -> Floats:
        """Returns scores for and against each trained statement, (texts, 2 x statements)."""
        # A task has many statements on the same clauses.
        if len(self._rows) > _CACHED:
            self._rows.clear()
        if new := [text for text in dict.fromkeys(texts) if text not in self._rows]:
            vectors = clause_vectors(new, self._size)
            self._rows |= zip(new, vectors @ self._clauses.T + self._bias, strict=True)
        return np.array([self._rows[text] for text in texts]).reshape(-1, len(self._bias))


def observed(head: SpanHead, statement: str, clauses: Sequence[str]) -> tuple[Floats, int | None]:
    """Returns features of a statement, and the index of the decisive clause.

    The features are the negative log-probability that the clause is irrelevant, the difference of
    the log-probabilities of yes and no, and whether exactly one of both texts is negated.
    """
    scores = head.read_nearest(statement, clauses, _READ)
    if not scores:
        return np.zeros(FEATURES), None
    best = min(scores, key=lambda number: scores[number].labels[0])
    null, _, yes, no = scores[best].labels
    is_denied = _is_negated(statement) != _is_negated(clauses[best])
    return np.array([-null, yes - no, float(is_denied)]), best


def _is_negated(text: str) -> bool:
    return bool(_NEGATION.search(text))


def _clauses(passages: Sequence[str], first: int = 0) -> list[Candidate]:
    return [
        Candidate(passage[start:end], number, start, end, 0.0)
        for number, passage in enumerate(passages, first)
        for start, end in clause_spans(passage)
    ]


def judge_claim(head: SpanHead, claim: str, passages: Sequence[str]) -> Decision:
    """Returns the judgement of a claim, by the most relevant of the passages nearest to it.

    The head is that of the recipe `verdicts`.
    """
    scores = head.read_nearest(claim, passages, _NEAREST)
    if not scores:
        return Decision((1.0, 0.0, 0.0), None)
    labels = {n: passage.labels for n, passage in scores.items()}
    number = max(labels, key=lambda n: np.logaddexp(*labels[n][2:]) - labels[n][0])
    null, _, yes, no = labels[number]
    clauses = _clauses([passages[number]], number)
    near = nearest(claim, [clause.text for clause in clauses], 1)
    return Decision(softmax(np.array([null, yes, no])), clauses[near[0]] if clauses else None)
