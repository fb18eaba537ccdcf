"""The recipe `statements`: trains a judge of ContractNLI's statements.

For each statement, two logistic regressions estimate the probability that a clause supports or
contradicts it; a third regression predicts the label from a contract's strongest clauses. The third
is trained on scores of held-out contracts.
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
from leporello.readers.embedded.spans import SpanHead
from leporello.text.english.terms import clause_vectors, strongest
from recipes.settings import exclusion
from recipes.statements.contracts import (
    LABELS,
    Contract,
    read_contracts,
    read_evidence,
)
from recipes.weights import pack, write_model

_RARE = -6.0  # log odds of evidence with fewer than `_FEWEST` clauses
_FEWEST = 3  # minimum number of clauses for a regression
_ALIKE = 0.5  # share of common clauses above which two contracts are the same
_SPECIFIC = 0.3  # scale of the weights that are specific to one statement

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class StatementsSettings:
    """Settings that determine the result of a training."""

    contracts: tuple[Path, ...]  # ContractNLI's JSON files
    encoder: Path  # folder of the recipe `answers`' encoder, which reads unknown statements
    evidence: tuple[Path, ...] = ()  # CSV files of evidence from further contracts
    size: Positive = 32768  # number of hashed terms
    clause_c: AboveZero = 10.0  # inverse strength of regularisation of the regressions of clauses
    label_c: AboveZero = 1.0  # inverse strength of regularisation of the regression of labels
    read: Positive = 18  # number of contracts that the encoder reads
    # Python file with `is_apart(text, share)`, which is run: contracts are left out if it returns
    # true.
    exclude: Path | None = None
    # Second argument of `is_apart`: share of a contract that must match.
    exclude_share: Share = 0.25
    folds: Positive = 4  # number of folds of the cross-validation
    seed: int = 1  # seed of the folds


SETTINGS = StatementsSettings


def train(settings: StatementsSettings, out: Path) -> dict[str, Any]:
    """Trains and writes a judge; returns its scores."""
    excluded = exclusion(settings.exclude, settings.exclude_share)
    statements = _statements(settings.contracts)
    complete = [c for p in settings.contracts for c in read_contracts(p, statements, excluded)]
    parts = [c for p in settings.evidence for c in read_evidence(p, statements, excluded)]
    model = _KnownStatements(settings, complete, _without_copies(parts, complete))
    texts = [*statements.values()]
    general = _UnknownStatements(settings, complete, texts)
    _ship(model, general, texts, settings, out)
    return {
        "contracts": len(complete),
        "evidence": len(model.parts),
        "validation": {
            **{f"known_{name}": value for name, value in model.cross_validated().items()},
            **{f"unknown_{name}": value for name, value in general.cross_validated().items()},
        },
    }


def _statements(paths: Sequence[Path]) -> dict[str, str]:
    labels = json.loads(paths[0].read_text(encoding="utf-8"))["labels"]
    return {key: labels[key]["hypothesis"] for key in sorted(labels)}


def _without_copies(parts: Sequence[Contract], complete: Sequence[Contract]) -> list[Contract]:
    """Returns the partial contracts that are not parts of the complete contracts."""
    clause_sets = [frozenset(contract.clauses) for contract in complete]
    return [
        part
        for part in parts
        if all(
            len(clauses & {*part.clauses}) <= _ALIKE * len(part.clauses) for clauses in clause_sets
        )
    ]


class _KnownStatements:
    """The regressions for ContractNLI's statements, with their training data."""

    def __init__(
        self, settings: StatementsSettings, complete: Sequence[Contract], parts: Sequence[Contract]
    ) -> None:
        self.settings, self.complete, self.parts = settings, complete, parts
        self._vectors = {
            c.id: clause_vectors(c.clauses, settings.size) for c in (*complete, *parts)
        }
        order = np.random.default_rng(settings.seed).permutation(len(complete))
        self._fold = order % settings.folds
        self.labels = np.array([contract.labels for contract in complete])

    def cross_validated(self) -> dict[str, float]:
        """Returns accuracies on held-out contracts."""
        scores = self._held_out_scores
        predicted = np.zeros_like(self.labels)
        common = np.zeros_like(self.labels)
        for fold in range(self.settings.folds):
            test = self._fold == fold
            weights = self._label_weights(scores[~test], self.labels[~test])
            predicted[test] = label_odds(scores[test], weights).argmax(axis=-1)
            counts = [(self.labels[~test] == i).sum(axis=0) for i in range(len(LABELS))]
            common[test] = np.argmax(counts, axis=0)
        return {
            **_accuracies(predicted, self.labels),
            "commonest": float((common == self.labels).mean()),
        }

    def fitted(self) -> tuple[Matrix, Matrix, Matrix]:
        """Returns the weights of clauses, their biases, and the weights of labels."""
        weights, bias = self._clause_weights(self.complete)
        return weights, bias, self._label_weights(self._held_out_scores, self.labels)

    @cached_property
    def _held_out_scores(self) -> Matrix:
        """Scores of each contract's strongest clauses, by regressions without the contract."""
        strongest_scores = np.zeros((len(self.complete), len(self.labels[0]), 4))
        for fold in range(self.settings.folds):
            train = [
                c for c, number in zip(self.complete, self._fold, strict=True) if number != fold
            ]
            weights, bias = self._clause_weights(train)
            for number in np.flatnonzero(self._fold == fold).tolist():
                scores = self._vectors[self.complete[number].id] @ weights.T + bias
                strongest_scores[number] = strongest(scores).reshape(4, -1).T
        return strongest_scores

    def _clause_weights(self, complete: Sequence[Contract]) -> tuple[Matrix, Matrix]:
        """Returns weights, shape (2 x statements, size), and biases: first for, then against."""
        from scipy.sparse import vstack
        from sklearn.linear_model import LogisticRegression

        contracts = [*complete, *self.parts]
        vectors = vstack([self._vectors[contract.id] for contract in contracts])
        evidence = np.concatenate([contract.evidence for contract in contracts])
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
        """Returns weights of log odds, shape (statements, labels, 1 + features)."""
        from sklearn.linear_model import LogisticRegression

        mean, spread = scores.mean(axis=0), scores.std(axis=0) + _SPECIFIC
        count, width = scores.shape[1:]
        indicators = np.eye(count)
        rows = np.array(
            [
                np.concatenate([values, indicators[j], _SPECIFIC * np.kron(indicators[j], values)])
                for contract in (scores - mean) / spread
                for j, values in enumerate(contract)
            ]
        )
        learnt = LogisticRegression(C=self.settings.label_c, max_iter=2000)
        learnt.fit(rows, labels.ravel())
        shared, level = learnt.coef_[:, :width], learnt.coef_[:, width : width + count]
        slopes = learnt.coef_[:, width + count :].reshape(len(LABELS), count, width)
        slopes = (shared[:, None] + _SPECIFIC * slopes) / spread
        level = level + learnt.intercept_[:, None] - (slopes * mean).sum(axis=-1)
        weights: Matrix = np.concatenate([level[..., None], slopes], axis=-1).transpose(1, 0, 2)
        return weights


class _UnknownStatements:
    """The regression for other statements, with its training data."""

    def __init__(
        self, settings: StatementsSettings, complete: Sequence[Contract], statements: Sequence[str]
    ) -> None:
        order = np.random.default_rng(settings.seed).permutation(len(complete))[: settings.read]
        chosen = [complete[number] for number in order]
        head = SpanHead(settings.encoder)
        features = [
            reader.observed(head, statement, contract.clauses)[0]
            for contract in chosen
            for statement in statements
        ]
        self._features = np.array(features).reshape(len(chosen), len(statements), -1)
        self._labels = np.array([contract.labels for contract in chosen])

    def cross_validated(self) -> dict[str, float]:
        """Returns accuracies on held-out statements."""
        predicted = np.zeros_like(self._labels)
        for column in range(predicted.shape[1]):
            train = np.arange(predicted.shape[1]) != column
            weights = _regression(self._features[:, train], self._labels[:, train])
            odds = weights[:, 0] + self._features[:, column] @ weights[:, 1:].T
            predicted[:, column] = odds.argmax(axis=1)
        return _accuracies(predicted, self._labels)

    def fitted(self) -> Matrix:
        """Returns weights of logits, shape (labels, 1 + features)."""
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


def _accuracies(predicted: NDArray[np.int64], labels: NDArray[np.int64]) -> dict[str, float]:
    """Returns the accuracy with a standard error over contracts, and the recall of each label."""
    right = (predicted == labels).mean(axis=1)
    return {
        "accuracy": float(right.mean()),
        "standard_error": float(right.std() / np.sqrt(len(right))),
        **{
            f"recall_of_{name.lower().replace(' ', '_')}": float(
                (predicted[labels == i] == i).mean()
            )
            for i, name in enumerate(LABELS)
        },
    }


def _ship(
    model: _KnownStatements,
    general: _UnknownStatements,
    statements: Sequence[str],
    settings: StatementsSettings,
    out: Path,
) -> None:
    weights, bias, labels = model.fitted()
    arrays = {
        "clauses": weights,
        "bias": bias,
        "labels": labels.reshape(-1),  # only flat arrays are not rounded to 8 bits
        "general": general.fitted().reshape(-1),
    }
    config: dict[str, Any] = {"statements": statements, "labels": LABELS, "size": settings.size}
    write_model(out, {"weights.safetensors": pack(arrays)}, config)
