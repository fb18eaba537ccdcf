"""How alike two texts are: distances and similarities, family by family, the same either way."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leporello.readers.batching.memo import remembered
from leporello.readers.classical.stylometry import FAMILIES, SPARSE, Family, Measures, measure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 2048  # pairs compared at once: bounds the memory
_REMEMBERED = 4096  # texts, some 10 kB each
_FARTHEST = 4.0  # standard deviations: a short text's rates lie anywhere
_LEAST = 1e-3  # standard deviation that a rate is divided by

Array = Any


def fit_profile(texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Returns what pairs are compared by: weights of n-grams; means and deviations of rates.

    Args:
        texts: Texts that what is usual is learned from; at least one.

    Returns:
        Plain arrays: `FAMILY.weights`, or `FAMILY.mean` and `FAMILY.deviation`.
    """
    import numpy as np

    measures, profile = measure(texts), {}
    for family, counts in measures.counts.items():
        documents = np.bincount(counts.indices, minlength=counts.shape[1])
        idf = np.log((1 + len(texts)) / (1 + documents)) + 1
        # Squared, what all texts share counts for little: measured, for n-grams of characters.
        profile[f"{family}.weights"] = idf**2 if family == "characters" else idf
    for family, rates in measures.rates.items():
        profile[f"{family}.mean"] = rates.mean(axis=0)
        profile[f"{family}.deviation"] = np.maximum(rates.std(axis=0), _LEAST)
    return profile


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text as it is compared.

    Attributes:
        ngrams: N-grams by sparse family, (indices, values): of unit length.
        dense: Z-scores by dense family; `FAMILY.share`, square roots of rates.
        words: Number of words of the text.
    """

    ngrams: Mapping[str, tuple[Array, Array]]
    dense: Mapping[str, Array]
    words: float


@dataclass(frozen=True)
class PairFeatures:
    """Compares texts by a profile; a text is measured once, and remembered within a bound.

    Attributes:
        profile: Profile as `fit_profile` returns it.
        families: Families of features that are compared.
    """

    profile: Mapping[str, NDArray[np.float64]]
    families: tuple[Family, ...] = FAMILIES
    _cached: OrderedDict[str, _Encoded] = field(default_factory=OrderedDict, repr=False)

    def features(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        """Returns a row a pair, shape (pairs, features); either order of a pair gives the same."""
        import numpy as np

        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        encoded = remembered(self._cached, texts, self._encoded, _REMEMBERED)
        stacked = _Stacked(encoded, self.families)
        rows = {text: row for row, text in enumerate(texts)}
        ends = np.array([[rows[one], rows[other]] for one, other in pairs]).reshape(-1, 2)
        starts = range(0, len(pairs), _BLOCK)
        # 300 paragraphs have 44,850 pairs (decision 16).
        blocks = [stacked.compare(*ends[start : start + _BLOCK].T) for start in starts]
        return np.concatenate(blocks) if blocks else np.empty((0, 0))

    def _encoded(self, texts: list[str]) -> list[_Encoded]:
        return _encode(measure(texts), self.profile)


def _encode(measures: Measures, profile: Mapping[str, Array]) -> list[_Encoded]:
    import numpy as np

    ngrams = {f: _unit_rows(n, profile[f"{f}.weights"]) for f, n in measures.counts.items()}
    dense: dict[str, Array] = {}
    for family, rates in measures.rates.items():
        scores = (rates - profile[f"{family}.mean"]) / profile[f"{family}.deviation"]
        dense[family] = np.clip(scores, -_FARTHEST, _FARTHEST)
        if family != "habits":
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
        values = (1 + np.log(counts.data[start:end])) * weights[indices]
        length = np.sqrt((values * values).sum()) or 1.0
        rows.append((indices, (values / length).astype(np.float32)))
    return rows


class _Stacked:
    """The texts of a call in arrays, to compare many pairs at once."""

    def __init__(self, texts: Sequence[_Encoded], families: Sequence[Family]) -> None:
        import numpy as np

        self.families = families
        self.words = np.array([text.words for text in texts])
        self.dense = {
            name: np.stack([text.dense[name] for text in texts])
            for name in (texts[0].dense if texts else ())
        }
        self.ngrams = {
            family: _matrix([text.ngrams[family] for text in texts], family)
            for family in families
            if family in SPARSE
        }

    def compare(self, one: Array, other: Array) -> Array:
        """Returns the features of pairs, whose texts stand at these places."""
        import numpy as np

        columns: list[Array] = [np.log1p(np.minimum(self.words[one], self.words[other]))]
        for family in self.families:
            if family in self.ngrams:
                rows = self.ngrams[family]
                columns.append(np.asarray(rows[one].multiply(rows[other]).sum(axis=1)).ravel())
            else:
                columns.extend(self._dense(family, one, other))
        return np.column_stack(columns).astype(np.float64)

    def _dense(self, family: Family, one: Array, other: Array) -> list[Array]:
        """Returns Burrows's Delta and two cosines of a family; of habits, each one's distance."""
        import numpy as np

        scores = self.dense[family]
        apart = np.abs(scores[one] - scores[other])
        if family == "habits":
            return list(apart.T)
        share = self.dense[f"{family}.share"]
        return [apart.mean(axis=1), _cosine(scores, one, other), _cosine(share, one, other)]


def _matrix(rows: Sequence[tuple[Array, Array]], family: Family) -> Any:  # noqa: ANN401 -- SciPy has no types
    import numpy as np
    from scipy.sparse import csr_matrix

    from leporello.readers.classical.stylometry import BUCKETS

    ends = np.cumsum([0, *(len(indices) for indices, _ in rows)])
    indices = np.concatenate([indices for indices, _ in rows])
    values = np.concatenate([values for _, values in rows])
    return csr_matrix((values, indices, ends), shape=(len(rows), BUCKETS[family]))


def _cosine(rows: Array, one: Array, other: Array) -> Array:
    import numpy as np

    lengths = np.sqrt((rows * rows).sum(axis=1))
    products = (rows[one] * rows[other]).sum(axis=1)
    return products / np.maximum(lengths[one] * lengths[other], np.finfo(np.float64).tiny)
