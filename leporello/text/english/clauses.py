"""Splits sentences and lists into clauses, and computes vectors of their terms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import fsum, log1p
from typing import TYPE_CHECKING

from leporello.text.sentences import sentence_spans
from leporello.text.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

_NUMBER = r"\(?(?:[a-zA-Z]|[ivx]{1,4}|\d{1,2}(?:\.\d+)*)"
_ITEM = re.compile(rf";\s++|(?<=[:,.])\s++(?={_NUMBER}\)\s)|(?<=\n)[^\S\n]*+(?={_NUMBER}[).]\s)")
_WORD = re.compile(r"\S+")
_TERM = r"[^\W\d_]+(?:['’]t\b)?|\d+"
_ABSENT = -7.0  # log odds of a label that no clause has


def clause_spans(text: str, longest: int = 60) -> list[tuple[int, int]]:
    """Returns the (start, end) of clauses; those of more than `longest` words in equal parts."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        cuts = [start, *(item.end() for item in _ITEM.finditer(text, start, end)), end]
        for first, last in pairwise(cuts):
            words = [word.span() for word in _WORD.finditer(text, first, last)]
            parts = -(-len(words) // longest)
            size = -(-len(words) // max(parts, 1))
            spans += [
                (words[i][0], words[min(i + size, len(words)) - 1][1])
                for i in range(0, len(words), max(size, 1))
            ]
    return spans


def clause_vectors(clauses: Sequence[str], size: int) -> csr_matrix:
    """Returns unit vectors of each clause's terms and pairs of terms, hashed to `size` columns."""
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        token_pattern=_TERM, ngram_range=(1, 2), n_features=size, binary=True, alternate_sign=False
    )
    return vectorizer.transform(clauses)


def strongest(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the greatest log odds of each column, then the mean of each column's two greatest."""
    import numpy as np

    padded = np.vstack([scores, np.full((2, scores.shape[1]), _ABSENT)])
    two = np.sort(padded, axis=0)[-2:]
    return np.concatenate([two[1], two.mean(axis=0)])


def nearest(text: str, candidates: Sequence[str], count: int) -> list[int]:
    """Returns indices of the texts that share most terms with a text; rare terms weigh more."""
    text_terms = set(terms(text))
    sets = [text_terms.intersection(terms(candidate)) for candidate in candidates]
    frequencies = Counter(term for common in sets for term in common)
    # fsum, since the order of a set differs between processes and would change the last digit.
    shared = [
        fsum(log1p(len(candidates) / frequencies[term]) for term in common) for common in sets
    ]
    return sorted(range(len(candidates)), key=lambda i: -shared[i])[:count]
