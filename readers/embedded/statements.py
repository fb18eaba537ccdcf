"""Statements judged against passages: these say so, say the contrary, or say neither."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leporello.models.weights import ModelFolder, unpack
from leporello.readers.embedded.spans import SpanHead
from leporello.text.english.clauses import clause_spans, clause_vectors, nearest, strongest
from leporello.text.squad import normalise

FEATURES = 3  # of a statement that training did not know
_READ = 3  # clauses that the encoder reads with a statement that training did not know
_NAMES = (
    {"not mentioned", "neutral", "neither", "unknown", "not enough info", "not enough information"},
    {"entailment", "entailed", "supported", "supports"},
    {"contradiction", "contradicted", "refuted", "refutes"},
)
_NEGATION = re.compile(r"\b(?:not?|never|none|nothing|neither|nor|without|cannot)\b|n['’]t\b", re.I)
Floats = NDArray[np.float64]
_NEAREST = 5  # passages that are read with a claim


@dataclass(frozen=True, slots=True)
class Judgement:
    """What passages say to a statement.

    Attributes:
        probabilities: Probabilities that they say neither, say so, say the contrary.
        known: Whether the statement is one that training knew.
        passage: Index of the passage with the clause that counted most; 0 where there is none.
        start: First character of that clause in the passage.
        end: One past its last character; equal to `start` where there is none.
    """

    probabilities: tuple[float, float, float]
    known: bool
    passage: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Clause:
    passage: int
    start: int
    end: int
    text: str


def label_order(choices: Sequence[str]) -> tuple[int, int, int] | None:
    """Returns where `neither`, `so` and `the contrary` stand among choices; None if they do not.

    Args:
        choices: Choices of a question, such as those of contract_nli.
    """
    plain = [" ".join(re.findall(r"[a-z]+", choice.lower())) for choice in choices]
    places = [[i for i, name in enumerate(plain) if name in names] for names in _NAMES]
    if len(choices) != len(_NAMES) or any(len(place) != 1 for place in places):
        return None
    (neither,), (so,), (contrary,) = places
    return neither, so, contrary


class StatementJudge:
    """Judges statements: those that training knew by what contracts say of them, others by reading.

    Args:
        path: Folder that the recipe `statements` wrote.
        head: Head that reads clauses with a statement that training did not know.

    Raises:
        UserError: If a file is missing or is not what was shipped.
    """

    def __init__(self, path: Path, head: SpanHead) -> None:
        folder = ModelFolder(path)
        config = folder.config()
        weights = unpack(folder.checked("weights.safetensors"))
        self._size: int = config["size"]
        self._known = {normalise(text): i for i, text in enumerate(config["statements"])}
        count, labels = len(self._known), len(_NAMES)
        self._clauses, self._bias = weights["clauses"], weights["bias"]
        self._labels = weights["labels"].reshape(count, labels, -1)
        self._general = weights["general"].reshape(labels, -1)
        self._head = head

    def knows(self, statement: str) -> bool:
        """Returns whether a statement is one that training knew."""
        return normalise(statement) in self._known

    def judge(self, asked: Sequence[tuple[str, Sequence[str]]]) -> list[Judgement]:
        """Returns what passages say to statements.

        Args:
            asked: Statements, each with its passages, the first things first.
        """
        clauses = [_clauses(passages) for _, passages in asked]
        known = [self._known.get(normalise(statement)) for statement, _ in asked]
        scores = self._scores(clauses, known)
        strange = [i for i, column in enumerate(known) if column is None]
        read = observed(self._head, [(asked[i][0], [c.text for c in clauses[i]]) for i in strange])
        found = {}
        for i, (features, place) in zip(strange, read, strict=True):
            clause = None if place is None else clauses[i][place]
            found[i] = _judgement(self._general, features, clause, known=False)
        for i, column in enumerate(known):
            if column is not None:
                own = scores[i][:, [column, column + len(self._known)]]
                clause = clauses[i][int(own.max(axis=1).argmax())] if clauses[i] else None
                found[i] = _judgement(self._labels[column], strongest(own), clause, known=True)
        return [found[i] for i in range(len(asked))]

    def _scores(
        self, clauses: Sequence[Sequence[_Clause]], known: Sequence[int | None]
    ) -> list[Floats]:
        """Returns for and against each known statement, shape (clauses, 2 x statements)."""
        needed = [c if k is not None else () for c, k in zip(clauses, known, strict=True)]
        texts = list(dict.fromkeys(clause.text for each in needed for clause in each))
        rows = {text: i for i, text in enumerate(texts)}
        if not texts:
            return [np.zeros((0, len(self._bias))) for _ in needed]
        scores = clause_vectors(texts, self._size) @ self._clauses.T + self._bias
        return [scores[[rows[clause.text] for clause in each]] for each in needed]


def observed(
    head: SpanHead, asked: Sequence[tuple[str, Sequence[str]]]
) -> list[tuple[Floats, int | None]]:
    """Returns what a head reads in the clauses nearest to statements, and the clause that counts.

    What it reads is how sure it is that a clause says anything to the statement, by how much it
    says yes rather than no, and whether one of both is negated and the other is not.

    Args:
        head: Head that reads.
        asked: Statements with clauses.
    """
    near = [nearest(statement, clauses, _READ) for statement, clauses in asked]
    read = iter(
        head.read([(s, c[i]) for (s, c), each in zip(asked, near, strict=True) for i in each])
    )
    found: list[tuple[Floats, int | None]] = []
    for (statement, clauses), each in zip(asked, near, strict=True):
        labels = {place: next(read).labels for place in each}
        if not labels:
            found.append((np.zeros(FEATURES), None))
            continue
        best = min(each, key=lambda place: labels[place][0])
        null, _, yes, no = labels[best]
        denied = _is_negated(statement) != _is_negated(clauses[best])
        found.append((np.array([-null, yes - no, float(denied)]), best))
    return found


def _is_negated(text: str) -> bool:
    return bool(_NEGATION.search(text))


def _clauses(passages: Sequence[str]) -> list[_Clause]:
    return [
        _Clause(number, start, end, passage[start:end])
        for number, passage in enumerate(passages)
        for start, end in clause_spans(passage)
    ]


def _judgement(
    weights: Floats, features: Floats, clause: _Clause | None, *, known: bool
) -> Judgement:
    odds = weights[:, 0] + weights[:, 1:] @ features
    neither, so, contrary = np.exp(odds - np.logaddexp.reduce(odds)).tolist()
    place = (clause.passage, clause.start, clause.end) if clause else (0, 0, 0)
    return Judgement((neither, so, contrary), known, *place)


class ClaimJudge:
    """Judges claims by reading them with the passages that share most words with them.

    Args:
        head: Head with the labels that the recipe `verdicts` trained.
    """

    def __init__(self, head: SpanHead) -> None:
        self._head = head

    def judge(self, asked: Sequence[tuple[str, Sequence[str]]]) -> list[Judgement]:
        """Returns what passages say to claims: what the one says that says most.

        Args:
            asked: Claims, each with its passages.
        """
        near = [nearest(claim, passages, _NEAREST) for claim, passages in asked]
        pairs = [(c, p[i]) for (c, p), each in zip(asked, near, strict=True) for i in each]
        scores = iter(self._head.read(pairs))
        found = []
        for (claim, passages), each in zip(asked, near, strict=True):
            read = [(next(scores).labels, place) for place in each]
            if not read:
                found.append(Judgement((1.0, 0.0, 0.0), False, 0, 0, 0))
                continue
            (null, _, yes, no), place = max(
                read, key=lambda one: np.logaddexp(*one[0][2:]) - one[0][0]
            )
            odds = np.array([null, yes, no])
            neither, so, contrary = np.exp(odds - np.logaddexp.reduce(odds)).tolist()
            spans = clause_spans(passages[place])
            clauses = [passages[place][start:end] for start, end in spans]
            start, end = spans[nearest(claim, clauses, 1)[0]] if spans else (0, 0)
            found.append(Judgement((neither, so, contrary), False, place, start, end))
        return found
