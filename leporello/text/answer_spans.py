"""Where references stand in a document, compared as SQuAD compares answers."""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, compress

from leporello.core.records import Document, Span
from leporello.text.squad import normalise

_WORD = re.compile(r"\S+")
_normalised = lru_cache(2**16)(normalise)  # of words, which a language has so many of


def occurrences(document: Document, reference: str) -> Iterator[Span]:
    """Yields where a reference stands in a document, in document order.

    Case, ASCII punctuation, articles and white space may differ, as in `normalise`; it begins and
    ends with whole words. The spans are without punctuation around them. One of which nothing
    is left, such as an article alone, stands nowhere.
    """
    if phrase := normalise(reference):
        words = document.memo(_WordSpans, lambda: _WordSpans.of(document.text))
        yield from words.find(phrase)


@dataclass(frozen=True)
class _WordSpans:
    """A text after normalisation, between blanks, and how to come back from it."""

    text: str
    normal: str

    @staticmethod
    def of(text: str) -> _WordSpans:
        # White space parts words before and after normalisation: word by word it is the same.
        words = filter(None, map(_normalised, text.split()))
        return _WordSpans(text, f" {' '.join(words)} ")

    def find(self, phrase: str) -> Iterator[Span]:
        padded, at = f" {phrase} ", -1
        while (at := self.normal.find(padded, at + 1)) >= 0:
            yield self._span(at + 1, at + len(phrase))

    def _span(self, first: int, last: int) -> Span:
        """Returns where two characters of the normalised text, and what is between, come from."""
        normal, original = self._places
        begin, end = (original[bisect_right(normal, position) - 1] for position in (first, last))
        first_word, last_word = self._word(begin), self._word(end)
        start = begin + len(first_word) - len(first_word.lstrip(string.punctuation))
        return Span(start, end + len(last_word.rstrip(string.punctuation)))

    def _word(self, start: int) -> str:
        match = _WORD.match(self.text, start)
        return match[0] if match else ""

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Returns where words begin: in the normalised text, and where each stood before."""
        sizes = [len(_normalised(word)) for word in self.text.split()]
        starts = [match.start() for match in compress(_WORD.finditer(self.text), sizes)]
        return [*accumulate((size + 1 for size in sizes if size), initial=1)][:-1], starts
