"""From ContractNLI's files to a shipped judge of its statements.

For each statement, two logistic regressions say how likely a clause is evidence for it, or against
it; a third says from a contract's strongest clauses which label it has. The last learns from scores
that the first two gave to contracts they had not seen.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.core.protocols import Positive, Share
from leporello.core.training import AboveZero
from leporello.readers.embedded import statements as reader
from leporello.text.english.clauses import clause_vectors, strongest
from recipes import encoder
from recipes.settings import exclusion
from recipes.statements.contracts import (
    LABELS,
    Contract,
    read_contracts,
    read_evidence,
)
from recipes.weights import pack, write_model

_RARE = -6.0  # log odds of evidence that too few contracts have
_FEWEST = 3  # clauses that are learnt from
_ALIKE = 0.5  # share of its clauses that make a contract the same as another
_OWN = 0.3  # how freely a statement differs from all others in what its scores mean

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class StatementsSettings:
    """All that decides what a training gives.

    Attributes:
        contracts: ContractNLI's JSON files.
        encoder: Folder of the answers' encoder, which reads with statements that are not known.
        evidence: CSV files of evidence from contracts of which no more is known.
        size: Number of hashed terms.
        clause_c: Inverse strength of regularisation where clauses are told apart.
        label_c: The same where contracts are.
        read: Number of contracts that the encoder reads.
        exclude: Python file with `is_apart(text, share)`, which is run: contracts that it knows are
            left out.
        exclude_share: Share of a contract that it must know.
        folds: Number of parts that contracts are divided into for cross-validation.
        seed: Seed of that division.
    """

    contracts: tuple[Path, ...]
    encoder: Path
    evidence: tuple[Path, ...] = ()
    size: Positive = 32768
    clause_c: AboveZero = 10.0
    label_c: AboveZero = 1.0
    read: Positive = 18
    exclude: Path | None = None
    exclude_share: Share = 0.25
    folds: Positive = 4
    seed: int = 1


SETTINGS = StatementsSettings


def train(settings: StatementsSettings, out: Path) -> dict[str, Any]:
    """Ships a judge by settings, and returns what was measured."""
    excluded = exclusion(settings.exclude, settings.exclude_share)
    statements = _statements(settings.contracts)
    whole = [c for p in settings.contracts for c in read_contracts(p, statements, excluded)]
    parts = [c for p in settings.evidence for c in read_evidence(p, statements, excluded)]
    model = _Learnt(settings, whole, _without(parts, whole))
    texts = [*statements.values()]
    general = _General(settings, whole, texts)
    _ship(model, general, texts, settings, out)
    return {
        "contracts": len(whole),
        "evidence": len(model.parts),
        "validation": {
            **{f"known_{name}": value for name, value in model.cross_validated().items()},
            **{f"unknown_{name}": value for name, value in general.cross_validated().items()},
        },
    }


def _statements(paths: Sequence[Path]) -> dict[str, str]:
    labels = json.loads(paths[0].read_text(encoding="utf-8"))["labels"]
    return {key: labels[key]["hypothesis"] for key in sorted(labels)}


def _without(parts: Sequence[Contract], whole: Sequence[Contract]) -> list[Contract]:
    """Returns those contracts of which the whole is not known."""
    known = [frozenset(contract.clauses) for contract in whole]
    return [
        part
        for part in parts
        if all(len(clauses & {*part.clauses}) <= _ALIKE * len(part.clauses) for clauses in known)
    ]


class _Learnt:
    """The regressions and what they are learnt from."""

    def __init__(
        self, settings: StatementsSettings, whole: Sequence[Contract], parts: Sequence[Contract]
    ) -> None:
        self.settings, self.whole, self.parts = settings, whole, parts
        self._vectors = {c.id: clause_vectors(c.clauses, settings.size) for c in (*whole, *parts)}
        order = np.random.default_rng(settings.seed).permutation(len(whole))
        self._fold = order % settings.folds
        self.labels = np.array([contract.labels for contract in whole])

    def cross_validated(self) -> dict[str, float]:
        """Returns accuracies, each contract judged by what was learnt without it."""
        seen = self._unseen_scores
        found = np.zeros_like(self.labels)
        common = np.zeros_like(self.labels)
        for fold in range(self.settings.folds):
            held = self._fold == fold
            weights = self._label_weights(seen[~held], self.labels[~held])
            found[held] = label_odds(seen[held], weights).argmax(axis=-1)
            counts = [(self.labels[~held] == i).sum(axis=0) for i in range(len(LABELS))]
            common[held] = np.argmax(counts, axis=0)
        return {
            **_accuracies(found, self.labels),
            "commonest": float((common == self.labels).mean()),
        }

    def fitted(self) -> tuple[Matrix, Matrix, Matrix]:
        """Returns the weights of clauses, their biases, and the weights of labels."""
        weights, bias = self._clause_weights(self.whole)
        return weights, bias, self._label_weights(self._unseen_scores, self.labels)

    @cached_property
    def _unseen_scores(self) -> Matrix:
        """Returns what each contract's strongest clauses score where it was not learnt from."""
        found = np.zeros((len(self.whole), len(self.labels[0]), 4))
        for fold in range(self.settings.folds):
            learnt = [c for c, own in zip(self.whole, self._fold, strict=True) if own != fold]
            weights, bias = self._clause_weights(learnt)
            for number in np.flatnonzero(self._fold == fold).tolist():
                scores = self._vectors[self.whole[number].id] @ weights.T + bias
                found[number] = strongest(scores).reshape(4, -1).T
        return found

    def _clause_weights(self, whole: Sequence[Contract]) -> tuple[Matrix, Matrix]:
        """Returns weights, shape (2 x statements, size), for each statement and then against."""
        from scipy.sparse import vstack
        from sklearn.linear_model import LogisticRegression

        known = [*whole, *self.parts]
        vectors = vstack([self._vectors[contract.id] for contract in known])
        evidence = np.concatenate([contract.evidence for contract in known])
        targets = np.concatenate([evidence == label for label in range(1, len(LABELS))], axis=1).T
        weights = np.zeros((len(targets), self.settings.size))
        bias = np.full(len(targets), _RARE)
        for row, target in enumerate(targets):
            if target.sum() >= _FEWEST:
                classifier = LogisticRegression(
                    C=self.settings.clause_c, solver="liblinear", tol=1e-3, random_state=0
                ).fit(vectors, target)
                weights[row], bias[row] = classifier.coef_[0], classifier.intercept_[0]
        return weights, bias

    def _label_weights(self, scores: Matrix, labels: NDArray[np.int64]) -> Matrix:
        """Returns weights, shape (statements, labels, 1 + features), that add up to log odds."""
        from sklearn.linear_model import LogisticRegression

        mean, spread = scores.mean(axis=0), scores.std(axis=0) + _OWN
        count, width = scores.shape[1:]
        own = np.eye(count)
        rows = np.array(
            [
                np.concatenate([values, own[j], _OWN * np.kron(own[j], values)])
                for contract in (scores - mean) / spread
                for j, values in enumerate(contract)
            ]
        )
        learnt = LogisticRegression(C=self.settings.label_c, max_iter=2000)
        learnt.fit(rows, labels.ravel())
        shared, level = learnt.coef_[:, :width], learnt.coef_[:, width : width + count]
        slopes = learnt.coef_[:, width + count :].reshape(len(LABELS), count, width)
        slopes = (shared[:, None] + _OWN * slopes) / spread
        level = level + learnt.intercept_[:, None] - (slopes * mean).sum(axis=-1)
        weights: Matrix = np.concatenate([level[..., None], slopes], axis=-1).transpose(1, 0, 2)
        return weights


class _General:
    """The regression that judges statements which are not known, and what it is learnt from."""

    def __init__(
        self, settings: StatementsSettings, whole: Sequence[Contract], statements: Sequence[str]
    ) -> None:
        order = np.random.default_rng(settings.seed).permutation(len(whole))[: settings.read]
        chosen = [whole[number] for number in order]
        asked = [(statement, contract.clauses) for contract in chosen for statement in statements]
        head = encoder.head_of(settings.encoder)
        features = [row for row, _ in reader.observed(head, asked)]
        self._features = np.array(features).reshape(len(chosen), len(statements), -1)
        self._labels = np.array([contract.labels for contract in chosen])

    def cross_validated(self) -> dict[str, float]:
        """Returns accuracies, each statement judged by what was learnt without it."""
        found = np.zeros_like(self._labels)
        for column in range(found.shape[1]):
            others = np.arange(found.shape[1]) != column
            weights = _regression(self._features[:, others], self._labels[:, others])
            odds = weights[:, 0] + self._features[:, column] @ weights[:, 1:].T
            found[:, column] = odds.argmax(axis=1)
        return _accuracies(found, self._labels)

    def fitted(self) -> Matrix:
        """Returns weights, shape (labels, 1 + features), that add up to logits."""
        return _regression(self._features, self._labels)


def _regression(features: Matrix, labels: NDArray[np.int64]) -> Matrix:
    from sklearn.linear_model import LogisticRegression

    learnt = LogisticRegression(max_iter=1000)
    learnt.fit(features.reshape(labels.size, -1), labels.ravel())
    weights: Matrix = np.concatenate([learnt.intercept_[:, None], learnt.coef_], axis=1)
    return weights


def label_odds(scores: Matrix, weights: Matrix) -> Matrix:
    """Returns the logits of labels, shape (contracts, statements, labels)."""
    odds: Matrix = weights[..., 0] + np.einsum("csf,slf->csl", scores, weights[..., 1:])
    return odds


def _accuracies(found: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]:
    """Returns how many labels were found, with a standard error over contracts."""
    right = (found == labels).mean(axis=1)
    return {
        "accuracy": float(right.mean()),
        "standard_error": float(right.std() / np.sqrt(len(right))),
        **{
            f"recall_of_{name.lower().replace(' ', '_')}": float((found[labels == i] == i).mean())
            for i, name in enumerate(LABELS)
        },
    }


def _ship(
    model: _Learnt,
    general: _General,
    statements: Sequence[str],
    settings: StatementsSettings,
    out: Path,
) -> None:
    weights, bias, labels = model.fitted()
    arrays = {
        "clauses": weights,
        "bias": bias,
        "labels": labels.reshape(-1),  # flat arrays are not rounded to 8 bits
        "general": general.fitted().reshape(-1),
    }
    told: dict[str, Any] = {"statements": statements, "labels": LABELS, "size": settings.size}
    write_model(out, {"weights.safetensors": pack(arrays)}, told)
