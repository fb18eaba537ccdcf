"""Measures of a text's style, in families of counts and rates."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import log1p, sqrt
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from leporello.readers.prompting.template import encodable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Families of hashed counts of n-grams. Few buckets: the shipped model stays at 88 kB, and
# collisions cost little for cosines.
BUCKETS = {"characters": 2**15, "words": 2**14}
PUNCTUATION = ".,;:!?-()'\"“”‘’—…"
# Columns of `habits`.
HABITS = (
    "word length", "spread of word length", "long words", "sentence length",
    "spread of sentence length", "paragraph length", "vocabulary richness", "contractions",
    "capitalised words", "words in capitals", "digits", "has quotation marks",
    "begins with a quotation mark", "has dashes", "words in -ly", "words in -ed", "words in -ing",
)  # fmt: skip
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_STOP = re.compile(r"[.!?…。！？]+")
_QUOTES = '"“”«»„'
_LONG = 7  # letters
_FUNCTION_WORDS = """
a about above after again against all almost along also although always am among an and
another any are around as at away back be because been before began behind being below
beneath beside between beyond both but by came can could did do does done down during each
either else enough even ever every few first for from get go got had has have having he her
here hers herself him himself his how however i if in indeed into is it its itself just knew
know last least less like little many may maybe me might mine more most much must my myself
near neither never no nobody none nor not nothing now of off often oh on once one only onto
or other ought our ours ourselves out over own perhaps quite rather said same saw say see
seemed seen several shall she should since so some something sometimes soon still such than
that the their theirs them themselves then there therefore these they this those though
thought through thus till to together too toward towards two under unless until up upon us
very was we well went were what when where whether which while who whom whose why will with
within without would yes yet you your yours yourself
"""
# Closed classes, auxiliaries, and a few adverbs and verbs of speech that are as frequent.
FUNCTION_WORDS: tuple[str, ...] = tuple(_FUNCTION_WORDS.split())
_COLUMNS = {word: column for column, word in enumerate(FUNCTION_WORDS)}


@dataclass(frozen=True, slots=True, eq=False)
class Measures:
    """Measures of texts, with a row per text."""

    ngrams: dict[str, Any]  # by sparse family: SciPy CSR matrices of shape (texts, buckets)
    dense: dict[str, NDArray[np.float64]]  # by dense family: shape (texts, columns of the family)
    words: NDArray[np.float64]  # number of words of each text, shape (texts,)


def measure(texts: Sequence[str]) -> Measures:
    """Returns the measures of texts; each row depends only on its text."""
    import numpy as np

    # Lone surrogates of damaged files would stop scikit-learn's hashing.
    texts = list(map(encodable, texts))
    words = [_WORD.findall(text) for text in texts]
    counts = {family: vectorizer.transform(texts) for family, vectorizer in _vectorizers().items()}
    rates = {
        "function_words": np.array([_function_words(text_words) for text_words in words]),
        "punctuation": np.array([_punctuation(text) for text in texts]),
        "habits": np.array([_habits(*pair) for pair in zip(texts, words, strict=True)]),
    }
    return Measures(counts, rates, np.array(list(map(len, words)), dtype=np.float64))


@cache
def _vectorizers() -> dict[str, Any]:
    """Returns the counters of n-grams, which are hashed and need no vocabulary."""
    from sklearn.feature_extraction.text import HashingVectorizer

    # Plain counts, since `pair_features` weights and normalises them with its own profile.
    plain: dict[str, Any] = {"norm": None, "alternate_sign": False}
    # Case stays, because capitals are part of a style; pieces end at words, not across them.
    characters = {"analyzer": "char_wb", "ngram_range": (2, 5), "lowercase": False}
    words = {"token_pattern": r"[^\W\d_]+"}
    return {
        "characters": HashingVectorizer(n_features=BUCKETS["characters"], **characters, **plain),
        "words": HashingVectorizer(n_features=BUCKETS["words"], **words, **plain),
    }


def _function_words(words: Sequence[str]) -> list[float]:
    counts = Counter(_COLUMNS.get(word.lower().replace("’", "'"), -1) for word in words)
    total = max(1, len(words))
    return [counts[column] / total for column in range(len(FUNCTION_WORDS))]


def _punctuation(text: str) -> list[float]:
    # Per character, not per word: text without spaces has rates too.
    total = max(1, len(text))
    return [text.count(mark) / total for mark in PUNCTUATION]


def _habits(text: str, words: Sequence[str]) -> list[float]:
    total, lengths = max(1, len(words)), list(map(len, words)) or [0]
    sentences = [len(part.split()) for part in _STOP.split(text) if part.strip()] or [0]
    lines = [len(line) for line in text.split("\n") if line.strip()] or [0]
    endings = Counter(chain.from_iterable((word[-2:], word[-3:]) for word in words))
    first_character = text.lstrip()[:1]
    return [
        fmean(lengths),
        pstdev(lengths),
        sum(length >= _LONG for length in lengths) / total,
        log1p(fmean(sentences)),
        log1p(pstdev(sentences)),
        log1p(fmean(lines)),
        # Guiraud's index: the plain share of different words falls with the length of a text.
        len({word.lower() for word in words}) / sqrt(total),
        sum("'" in word or "’" in word for word in words) / total,
        sum(word[0].isupper() for word in words) / total,
        sum(len(word) > 1 and word.isupper() for word in words) / total,
        sum(map(str.isdecimal, text)) / max(1, len(text)),
        float(any(mark in text for mark in _QUOTES)),
        float(bool(first_character) and first_character in _QUOTES),
        float("--" in text or "—" in text),
        endings["ly"] / total,
        endings["ed"] / total,
        endings["ing"] / total,
    ]
