"""Features of pairs of texts: symmetric distances and similarities, by family."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.readers.classical.stylometry import BUCKETS, DENSE, Measures, measure

_BLOCK = 2048  # pairs that are compared at once, which limits the memory
_CACHE_SIZE = 4096  # texts of about 10 kB
_MAX_DEVIATIONS = 4.0  # limit of z-scores, since the rates of short texts vary widely
_MIN_DEVIATION = 1e-3  # standard deviation that a rate is divided by

Array = Any


def fit_profile(texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Returns a profile for comparisons, as arrays by name.

    They are `FAMILY.weights` of n-grams; `FAMILY.mean` and `FAMILY.deviation` of rates.
    """
    measures, profile = measure(texts), {}
    for family, counts in measures.ngrams.items():
        # Number of texts with each n-gram: a matrix lists each of its columns once per row.
        documents = np.bincount(counts.indices, minlength=counts.shape[1])
        idf = np.log((1 + len(texts)) / (1 + documents)) + 1
        # Squared for n-grams of characters, since frequent ones then count less: measured.
        profile[f"{family}.weights"] = idf**2 if family == "characters" else idf
    for family, rates in measures.dense.items():
        profile[f"{family}.mean"] = rates.mean(axis=0)
        # A rate that never varies in training would otherwise divide by zero.
        profile[f"{family}.deviation"] = np.maximum(rates.std(axis=0), _MIN_DEVIATION)
    return profile


class PairFeatures:
    """Compares texts by a profile, with a bounded cache of the features of texts."""

    def __init__(self, profile: Mapping[str, NDArray[np.float64]]) -> None:
        """Compares texts by a result of `fit_profile`."""
        self._profile = profile
        self._rows: dict[str, int] = {}  # rows of texts in the cache
        self._cached: Measures | None = None

    def features(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Returns a row per pair, shape (pairs, features), for either order of its texts."""
        cached = self._of(dict.fromkeys(text for pair in pairs for text in pair))
        sides = np.array([[self._rows[a], self._rows[b]] for a, b in pairs])
        starts = range(0, len(pairs), _BLOCK)
        # In blocks, since 300 paragraphs have 44,850 pairs (decision 16).
        return np.concatenate([_compared(cached, *sides[n : n + _BLOCK].T) for n in starts])

    def _of(self, texts: Collection[str]) -> Measures:
        """Returns the features in the cache, which has those of these texts."""
        if len(self._rows.keys() | texts) > _CACHE_SIZE:
            self._rows, self._cached = {}, None
        new = [text for text in texts if text not in self._rows]
        if new or not self._cached:
            weighted = _weighted(measure(new), self._profile)
            self._cached = _joined(self._cached, weighted) if self._cached else weighted
            self._rows |= {text: row for row, text in enumerate(new, len(self._rows))}
        return self._cached


def _weighted(measures: Measures, profile: Mapping[str, Array]) -> Measures:
    """Returns n-grams as rows of unit length; z-scores of rates, and roots as `FAMILY.share`."""
    ngrams = {f: _unit_rows(n, profile[f"{f}.weights"]) for f, n in measures.ngrams.items()}
    dense: dict[str, Array] = {}
    for family, rates in measures.dense.items():
        scores = (rates - profile[f"{family}.mean"]) / profile[f"{family}.deviation"]
        dense[family] = np.clip(scores, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        # Habits include lengths, which are not shares, so they have no roots.
        if family != "habits":
            # Square roots, so the commonest word does not decide the cosine alone.
            dense[f"{family}.share"] = np.sqrt(rates)
    return Measures(ngrams, dense, measures.words)


def _unit_rows(counts: Any, weights: Array) -> Any:  # noqa: ANN401 -- SciPy has no types
    """Returns the rows with values (1 + log count) x weight, of unit length."""
    counts.sort_indices()
    # Logarithms, since a name that a text repeats fifty times is not fifty times the evidence.
    counts.data = (1 + np.log(counts.data)) * weights[counts.indices]
    for start, end in pairwise(counts.indptr):
        values = counts.data[start:end]
        values /= np.sqrt((values * values).sum()) or 1.0
    # Float32 halves the memory of the cache, which holds 4,096 texts of about 10 kB.
    return counts.astype(np.float32)


def _joined(first: Measures, second: Measures) -> Measures:
    from scipy.sparse import vstack

    return Measures(
        {f: vstack([rows, second.ngrams[f]], "csr") for f, rows in first.ngrams.items()},
        {name: np.concatenate([rows, second.dense[name]]) for name, rows in first.dense.items()},
        np.concatenate([first.words, second.words]),
    )


def _compared(measures: Measures, left: Array, right: Array) -> Array:
    """Returns the features of pairs; `left` and `right` are the rows of their texts."""
    # The shorter text limits how much any distance proves.
    columns: list[Array] = [np.log1p(np.minimum(measures.words[left], measures.words[right]))]
    columns += [_products(measures.ngrams[family], left, right) for family in BUCKETS]
    for family in DENSE:
        columns += _distances(measures.dense, family, left, right)
    # All columns are symmetric, so the order of a pair cannot change its probability.
    return np.column_stack(columns).astype(np.float64)


def _distances(dense: Mapping[str, Array], family: str, left: Array, right: Array) -> list[Array]:
    """Returns Burrows's Delta and two cosines of a family, or the distance of each habit."""
    scores = dense[family]
    distances = np.abs(scores[left] - scores[right])
    if family == "habits":
        return list(distances.T)
    share = dense[f"{family}.share"]
    return [distances.mean(axis=1), _cosine(scores, left, right), _cosine(share, left, right)]


def _products(rows: Any, left: Array, right: Array) -> Array:  # noqa: ANN401 -- SciPy has no types
    """Returns the dot products of pairs of rows, each of which depends only on its two rows."""
    products, dense = np.empty(len(left)), np.zeros(rows.shape[1])
    # A document's pairs have one right row after the other. As a dense vector it takes a fifth of
    # the time of a product of sparse rows.
    for row in np.unique(right):
        pairs, entries = np.flatnonzero(right == row), slice(*rows.indptr[row : row + 2])
        dense[rows.indices[entries]] = rows.data[entries]
        products[pairs] = rows[left[pairs]] @ dense
        dense[rows.indices[entries]] = 0
    return products


def _cosine(rows: Array, left: Array, right: Array) -> Array:
    lengths = np.sqrt((rows * rows).sum(axis=1))
    products = (rows[left] * rows[right]).sum(axis=1)
    return products / np.maximum(lengths[left] * lengths[right], np.finfo(np.float64).tiny)
