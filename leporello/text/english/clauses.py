"""Clauses: sentences, with the items of a list taken apart, and their terms in numbers."""

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
_NOWHERE = -7.0  # log odds of what no clause says


def clause_spans(text: str, longest: int = 60) -> list[tuple[int, int]]:
    """Returns the clauses of a text as (start, end), ascending, without the blanks around them.

    Args:
        text: Text of any kind.
        longest: Number of words of a clause at most; a longer one is cut into even parts.
    """
    found: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        cuts = [start, *(item.end() for item in _ITEM.finditer(text, start, end)), end]
        for first, last in pairwise(cuts):
            words = [word.span() for word in _WORD.finditer(text, first, last)]
            parts = -(-len(words) // longest)
            size = -(-len(words) // max(parts, 1))
            found += [
                (words[i][0], words[min(i + size, len(words)) - 1][1])
                for i in range(0, len(words), max(size, 1))
            ]
    return found


def clause_vectors(clauses: Sequence[str], size: int) -> csr_matrix:
    """Returns which terms and pairs of neighbouring terms each clause has, in rows of length 1.

    Args:
        clauses: Clauses.
        size: Number of columns; terms are hashed, so that no vocabulary is kept.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(
        token_pattern=_TERM,
        ngram_range=(1, 2),
        n_features=size,
        binary=True,
        alternate_sign=False,
    )
    return vectorizer.transform(clauses)


def strongest(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the greatest score of each column, then the mean of each column's two greatest.

    Args:
        scores: Log odds of clauses, shape (clauses, columns); there may be no clauses.
    """
    import numpy as np

    padded = np.vstack([scores, np.full((2, scores.shape[1]), _NOWHERE)])
    two = np.sort(padded, axis=0)[-2:]
    return np.concatenate([two[1], two.mean(axis=0)])


def nearest(text: str, others: Sequence[str], count: int) -> list[int]:
    """Returns which texts share most terms with one, terms of few texts weighing more, in order."""
    wanted = set(terms(text))
    sets = [wanted.intersection(terms(other)) for other in others]
    having = Counter(term for each in sets for term in each)
    shared = [fsum(log1p(len(others) / having[term]) for term in each) for each in sets]
    return sorted(range(len(others)), key=lambda i: -shared[i])[:count]
