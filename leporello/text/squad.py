"""The comparison of SQuAD: its normalisation, and references in a document."""

import re
import string
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, compress
from typing import Self

from leporello.core.records import Document, Span

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(8)  # several metrics compare the same texts
def normalise(text: str) -> str:
    """Normalises a text as SQuAD v1.1's `evaluate-v1.1.py` does before comparing answers.

    In this order: convert to lower case, delete ASCII punctuation, replace articles by blanks, and
    collapse white space to single blanks.
    """
    plain = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def token_f1(guess: Sequence[str], reference: Sequence[str]) -> float:
    """Returns the F1 of two lists of words, 0 to 1; 0 if they share no word."""
    guessed, expected = Counter(guess), Counter(reference)
    # Not `&` of the counters, which calls a function for each word that the reference lacks.
    shared = sum(min(guessed[w], expected[w]) for w in guessed.keys() & expected.keys())
    return 2 * shared / (len(guess) + len(reference)) if shared else 0.0


# Words between blanks, as SQuAD's normalisation splits them.
_WORD = re.compile(r"\S+")
_normalised = lru_cache(2**16)(normalise)  # a language has few different words


def occurrences(document: Document, reference: str) -> Iterator[Span]:
    """Yields the spans of a reference in a document, in document order.

    Case, ASCII punctuation, articles and white space may differ, as in `normalise`. Spans begin
    and end with complete words, without punctuation around them.
    """
    if phrase := normalise(reference):
        words = document.memo(_WordSpans, lambda: _WordSpans.of(document.text))
        yield from words.find(phrase)


@dataclass(frozen=True)
class _WordSpans:
    """A text and its normalised form between blanks, and the mapping between their offsets."""

    text: str
    normal: str

    @classmethod
    def of(cls, text: str) -> Self:
        # White space separates words before and after normalisation: each word is normalised alone.
        words = filter(None, map(_normalised, text.split()))
        return cls(text, f" {' '.join(words)} ")

    def find(self, phrase: str) -> Iterator[Span]:
        # With blanks on both sides, so that `art` is not found in `party` (decision 25).
        padded, offset = f" {phrase} ", -1
        while (offset := self.normal.find(padded, offset + 1)) >= 0:
            yield self._span(offset + 1, offset + len(phrase))

    def _span(self, first: int, last: int) -> Span:
        """Returns the span of the text between two characters of its normalised form, inclusive."""
        normal, original = self._word_starts
        begin, end = (original[bisect_right(normal, position) - 1] for position in (first, last))
        first_word, last_word = self._word(begin), self._word(end)
        # ASCII marks only, as in SQuAD: curly quotes around an answer hide it (decision 25).
        start = begin + len(first_word) - len(first_word.lstrip(string.punctuation))
        return Span(start, end + len(last_word.rstrip(string.punctuation)))

    def _word(self, start: int) -> str:
        match = _WORD.match(self.text, start)
        return match[0] if match else ""

    @cached_property
    def _word_starts(self) -> tuple[list[int], list[int]]:
        """Offsets of words in the normalised form, and of the same words in the text."""
        sizes = [len(_normalised(word)) for word in self.text.split()]
        # Words that normalise to nothing, such as articles, have no place in the normal form.
        starts = [match.start() for match in compress(_WORD.finditer(self.text), sizes)]
        return [*accumulate((size + 1 for size in sizes if size), initial=1)][:-1], starts
