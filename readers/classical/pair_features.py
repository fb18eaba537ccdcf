"""Features of pairs of texts: symmetric distances and similarities, by family."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leporello.readers.batching.memo import remembered
from leporello.readers.classical.stylometry import BUCKETS, DENSE, Measures, measure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 2048  # pairs that are compared at once, which limits the memory
_CACHE_SIZE = 4096  # texts of about 10 kB
_MAX_DEVIATIONS = 4.0  # limit of z-scores, since the rates of short texts vary widely
_MIN_DEVIATION = 1e-3  # standard deviation that a rate is divided by

Array = Any


def fit_profile(texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Returns a profile for comparisons, as arrays by name.

    They are `FAMILY.weights` of n-grams; `FAMILY.mean` and `FAMILY.deviation` of rates.
    """
    import numpy as np

    measures, profile = measure(texts), {}
    for family, counts in measures.counts.items():
        # Number of texts with each n-gram: a matrix lists each of its columns once per row.
        documents = np.bincount(counts.indices, minlength=counts.shape[1])
        idf = np.log((1 + len(texts)) / (1 + documents)) + 1
        # Squared for n-grams of characters, since frequent ones then count less: measured.
        profile[f"{family}.weights"] = idf**2 if family == "characters" else idf
    for family, rates in measures.rates.items():
        profile[f"{family}.mean"] = rates.mean(axis=0)
        # A rate that never varies in training would otherwise divide by zero.
        profile[f"{family}.deviation"] = np.maximum(rates.std(axis=0), _MIN_DEVIATION)
    return profile


@dataclass(frozen=True, slots=True)
class _Encoded:
    # Vectors of n-grams by sparse family, as (indices, values), of unit length.
    ngrams: Mapping[str, tuple[Array, Array]]
    # Z-scores by dense family, and `FAMILY.share`, the square roots of rates.
    dense: Mapping[str, Array]
    words: float  # number of words of the text


@dataclass(frozen=True)
class PairFeatures:
    """Compares texts by a profile, with a bounded cache of the features of texts."""

    profile: Mapping[str, NDArray[np.float64]]
    _cached: OrderedDict[str, _Encoded] = field(default_factory=OrderedDict, repr=False)

    def features(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Returns a row per pair, shape (pairs, features), for either order of its texts."""
        import numpy as np

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        encoded = remembered(self._cached, texts, self._encoded, _CACHE_SIZE)
        stacked = _Stacked(encoded)
        rows = {text: row for row, text in enumerate(texts)}
        sides = np.array([[rows[first], rows[second]] for first, second in pairs]).reshape(-1, 2)
        starts = range(0, len(pairs), _BLOCK)
        # In blocks, since 300 paragraphs have 44,850 pairs (decision 16).
        blocks = [stacked.compare(*sides[start : start + _BLOCK].T) for start in starts]
        return np.concatenate(blocks) if blocks else np.empty((0, 0))

    def _encoded(self, texts: list[str]) -> list[_Encoded]:
        return _encode(measure(texts), self.profile)


def _encode(measures: Measures, profile: Mapping[str, Array]) -> list[_Encoded]:
    import numpy as np

    ngrams = {f: _unit_rows(n, profile[f"{f}.weights"]) for f, n in measures.counts.items()}
    dense: dict[str, Array] = {}
    for family, rates in measures.rates.items():
        scores = (rates - profile[f"{family}.mean"]) / profile[f"{family}.deviation"]
        dense[family] = np.clip(scores, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        # Habits include lengths, which are not shares, so they have no roots.
        if family != "habits":
            # Square roots, so the commonest word does not decide the cosine alone.
            dense[f"{family}.share"] = np.sqrt(rates)
    return [
        _Encoded(
            {family: rows[row] for family, rows in ngrams.items()},
            {name: values[row].copy() for name, values in dense.items()},
            float(measures.lengths[row]),
        )
        for row in range(len(measures.lengths))
    ]


def _unit_rows(counts: Any, weights: Array) -> list[tuple[Array, Array]]:  # noqa: ANN401 -- SciPy has no types
    """Returns each row as (indices, values): (1 + log count) x weight, of unit length."""
    import numpy as np

    counts.sort_indices()
    rows = []
    for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        indices = counts.indices[start:end].astype(np.int32)
        # Logarithms, since a name that a text repeats fifty times is not fifty times the evidence.
        values = (1 + np.log(counts.data[start:end])) * weights[indices]
        length = np.sqrt((values * values).sum()) or 1.0
        # Float32 halves the memory of the cache, which holds 4,096 texts of about 10 kB.
        rows.append((indices, (values / length).astype(np.float32)))
    return rows


class _Stacked:
    """Features of several texts as arrays, which compare many pairs at once."""

    def __init__(self, texts: Sequence[_Encoded]) -> None:
        import numpy as np

        self.words = np.array([text.words for text in texts])
        self.dense = {
            name: np.stack([text.dense[name] for text in texts])
            for name in (texts[0].dense if texts else ())
        }
        self.ngrams = [
            _matrix([text.ngrams[family] for text in texts], size)
            for family, size in BUCKETS.items()
        ]

    def compare(self, left: Array, right: Array) -> Array:
        """Returns the features of pairs; the arguments are the indices of their texts."""
        import numpy as np

        # The shorter text limits how much any distance proves.
        columns: list[Array] = [np.log1p(np.minimum(self.words[left], self.words[right]))]
        columns += [_products(rows, left, right) for rows in self.ngrams]
        columns += [column for family in DENSE for column in self._dense(family, left, right)]
        # All columns are symmetric, so the order of a pair cannot change its probability.
        return np.column_stack(columns).astype(np.float64)

    def _dense(self, family: str, left: Array, right: Array) -> list[Array]:
        """Returns Burrows's Delta and two cosines of a family, or the distance of each habit."""
        import numpy as np

        scores = self.dense[family]
        distances = np.abs(scores[left] - scores[right])
        if family == "habits":
            return list(distances.T)
        share = self.dense[f"{family}.share"]
        return [distances.mean(axis=1), _cosine(scores, left, right), _cosine(share, left, right)]


def _matrix(rows: Sequence[tuple[Array, Array]], size: int) -> Any:  # noqa: ANN401 -- SciPy has no types
    import numpy as np
    from scipy.sparse import csr_matrix

    ends = np.cumsum([0, *(len(indices) for indices, _ in rows)])
    indices = np.concatenate([indices for indices, _ in rows])
    values = np.concatenate([values for _, values in rows])
    return csr_matrix((values, indices, ends), shape=(len(rows), size))


def _products(rows: Any, left: Array, right: Array) -> Array:  # noqa: ANN401 -- SciPy has no types
    """Returns the dot products of pairs of rows, each of which depends only on its two rows."""
    import numpy as np

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
    import numpy as np

    lengths = np.sqrt((rows * rows).sum(axis=1))
    products = (rows[left] * rows[right]).sum(axis=1)
    return products / np.maximum(lengths[left] * lengths[right], np.finfo(np.float64).tiny)
