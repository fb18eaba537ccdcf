"""How often each term stands in each text, as a sparse matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from leporello.calls import Index
from leporello.tokens import terms

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["count_known", "count_terms", "grams", "pack", "unpack"]


def grams(text: str, longest: int) -> list[str]:
    """Returns a text's terms, then its pairs of successive terms, and so on up to `longest`."""
    single = terms(text)
    found = list(single)
    for n in range(2, longest + 1):
        found += map(" ".join, zip(*(single[i:] for i in range(n)), strict=False))
    return found


def count_terms(bags: Iterable[Sequence[str]]) -> tuple[csr_array, list[str]]:
    """Returns the counts, of shape (bags, terms), and what term each column counts."""
    ids: defaultdict[str, int] = defaultdict()
    ids.default_factory = ids.__len__  # a new term gets the next column
    rows = [[ids[term] for term in bag] for bag in bags]
    return _matrix(rows, len(ids)), list(ids)


def count_known(bags: Iterable[Sequence[str]], columns: Iterable[str]) -> csr_array:
    """Returns the counts of these terms, of shape (bags, columns); other terms are left out."""
    ids = {term: column for column, term in enumerate(columns)}
    rows = [[ids[term] for term in bag if term in ids] for bag in bags]
    return _matrix(rows, len(ids))


def _matrix(rows: Sequence[Sequence[int]], width: int) -> csr_array:
    import numpy as np
    from scipy.sparse import csr_array

    starts = np.cumsum([0, *map(len, rows)])
    columns = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(starts[-1]))
    matrix = csr_array((np.ones(len(columns)), columns, starts), shape=(len(rows), width))
    matrix.sum_duplicates()
    return matrix


def pack(weights: csr_array, columns: Sequence[str]) -> Index:
    """Returns a matrix of shape (chunks, terms) and its terms as an index that can be kept."""
    return {
        "data": weights.data,
        "indices": weights.indices,
        "indptr": weights.indptr,
        "terms": list(columns),
    }


def unpack(index: Index) -> tuple[csr_array, list[str]]:
    """Returns the matrix and the terms that were packed."""
    from scipy.sparse import csr_array

    packed: Any = index
    shape = (len(packed["indptr"]) - 1, len(packed["terms"]))
    parts = (packed["data"], packed["indices"], packed["indptr"])
    return csr_array(parts, shape=shape), packed["terms"]
