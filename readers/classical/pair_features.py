"""Features of pairs of texts: symmetric distances and similarities, by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.readers.classical.stylometry import measure

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


def features(profile: Mapping[str, Array], pairs: Sequence[tuple[str, str]]) -> Array:
    """Returns a row per pair, shape (pairs, features), for either order of its texts.

    `profile` is a result of `fit_profile`.
    """
    numbers: dict[str, int] = {}
    sides = [[numbers.setdefault(text, len(numbers)) for text in pair] for pair in pairs]
    first, second = np.array(sides).T
    measures = measure([*numbers])
    # All columns are symmetric, so the order of a pair cannot change its probability.
    # The shorter text limits how much any distance proves.
    columns: list[Array] = [np.log1p(np.minimum(measures.words[first], measures.words[second]))]
    for family, counts in measures.ngrams.items():
        columns.append(_products(_unit_rows(counts, profile[f"{family}.weights"]), first, second))
    for family, rates in measures.dense.items():
        scores = (rates - profile[f"{family}.mean"]) / profile[f"{family}.deviation"]
        scores = np.clip(scores, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        distances = np.abs(scores[first] - scores[second])
        # Habits include lengths, which are not shares, so they have no roots.
        if family == "habits":
            columns += list(distances.T)
            continue
        # Burrows's Delta, and two cosines. Square roots, so the commonest word does not decide
        # the cosine alone.
        roots = np.sqrt(rates)
        cosines = [_cosine(rows, first, second) for rows in (scores, roots)]
        columns += [distances.mean(axis=1), *cosines]
    return np.column_stack(columns).astype(np.float64)


def _unit_rows(counts: Any, weights: Array) -> Any:  # noqa: ANN401 -- SciPy has no types
    """Returns the rows with values (1 + log count) x weight, of unit length."""
    counts.sort_indices()
    # Logarithms, since a name that a text repeats fifty times is not fifty times the evidence.
    counts.data = (1 + np.log(counts.data)) * weights[counts.indices]
    for start, end in pairwise(counts.indptr):
        values = counts.data[start:end]
        values /= np.sqrt((values * values).sum()) or 1.0
    # As in the training of the shipped model.
    return counts.astype(np.float32)


def _products(rows: Any, first: Array, second: Array) -> Array:  # noqa: ANN401 -- SciPy has no types
    """Returns the dot products of pairs of rows, each of which depends only on its two rows."""
    products, dense = np.empty(len(first)), np.zeros(rows.shape[1])
    # A document's pairs have one second row after the other. As a dense vector it takes a fifth of
    # the time of a product of sparse rows.
    for row in np.unique(second):
        pairs, entries = np.flatnonzero(second == row), slice(*rows.indptr[row : row + 2])
        dense[rows.indices[entries]] = rows.data[entries]
        products[pairs] = rows[first[pairs]] @ dense
        dense[rows.indices[entries]] = 0
    return products


def _cosine(rows: Array, first: Array, second: Array) -> Array:
    lengths = np.sqrt((rows * rows).sum(axis=1))
    products = (rows[first] * rows[second]).sum(axis=1)
    return products / np.maximum(lengths[first] * lengths[second], np.finfo(np.float64).tiny)
