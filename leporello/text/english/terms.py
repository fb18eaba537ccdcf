"""Stems of the terms that describe the topic of a text, speakers' names, clauses of sentences."""

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


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


EMPTY_TERMS = _words(
    "a about above after again all also am an and any are as at be because been before being"
    " below between both but by can could d did do does doing down during each few for from"
    " further get go going got had has have having he her here hers him himself his how hmm i if"
    " in into is it its itself just know like ll m me mean mm more most my myself no nor not now"
    " of off oh ok okay on one only or other our ours out over own re really right s said same"
    " say she should so some such t than that the their theirs them then there these they thing"
    " things think this those through to too uh um under until up us ve very was we well were"
    " what when where which while who whom why will with would yeah you your yours according"
    " answer article chapter describe discuss discussed discussing discussion document episode"
    " group happen happened happening happens main meeting paper paragraph passage plot report"
    " script setting story summarise summarize summary talk talked team text transcript whole"
)
_STEM = 6  # characters


def stem(term: str) -> str:
    """Returns a rough stem: the same string for most forms of a word."""
    return term.rstrip("s")[:_STEM] or term


EMPTY_STEMS = frozenset(map(stem, EMPTY_TERMS))


def content_terms(text: str) -> list[str]:
    """Returns the stems of the terms that describe a text's topic, without repetitions."""
    distinct = dict.fromkeys(terms(text))
    return list(dict.fromkeys(stem(t) for t in distinct if t not in EMPTY_TERMS and len(t) > 1))


LINE = re.compile(r"(?:(?<![^\S\n])[^\S\n]++)?+\S[^\n]*+")  # not blank

_LABEL = re.compile(r"[^\S\n]*(?P<name>[^\W_][^:\n]{0,40}?)[^\S\n]*:(?=\s)")
# More words are a sentence, which can also end with a colon.
_NAME_WORDS = 5
_LABELLED = 0.5  # share of the lines of a script that begin with a speaker's name


def is_script(texts: Sequence[str]) -> bool:
    """Returns whether at least half of the lines begin with a speaker's name."""
    lines = labelled = 0
    for text in texts:
        for line in LINE.finditer(text):
            # Half of the lines, not all: long speeches continue without a name.
            lines += 1
            labelled += label(text, *line.span()) is not None
    return lines > 1 and labelled >= _LABELLED * lines


def label(text: str, start: int, end: int) -> re.Match[str] | None:
    """Matches a speaker's name, group `name`, and a colon at the start of a line."""
    match = _LABEL.match(text, start, min(end + 1, len(text)))
    return match if match and len(match["name"].split()) <= _NAME_WORDS else None


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
