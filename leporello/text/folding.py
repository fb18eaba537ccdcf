"""Folds letters and digits that readers take for the same, for comparison.

Folded texts have other lengths than the originals. `ComposedText` maps spans back.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self

import regex

from leporello.core.records import Span

# In texts of these Latin letters and punctuation, only the letter case differs. Left out are
# invisible characters, digits such as `²`, and ligatures.
NOT_LATIN = re.compile(
    "[^\x00-\xa9\xab\xac\xae-\xb1\xb4-\xb8\xbb\xbf-\u012f\u0131\u0134-\u013e\u0141-\u01c3\u01cd-\u01ef"
    "\u01f4-\u024f\u2010-\u2016\u2018-\u2029\u202f-\u203d\u203f-\u205f]"
)
# Soft hyphens, zero-width blanks and other characters that readers do not see.
_INVISIBLE = regex.compile(r"\p{Default_Ignorable_Code_Point}+")
# Accents without a letter, and trade marks: their expansion would join the word beside them.
_SIGN = regex.compile(r"[\p{Sk}™℠]")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
# Letters and digits with their marks (or the further parts of a Korean syllable), unless they are
# ASCII, and invisible characters: only these change in a `ComposedText`.
_CLUSTER = regex.compile(
    r"[\p{L}\p{N}][\p{M}\u1160-\u11ff\p{Default_Ignorable_Code_Point}]++"
    r"|(?![a-zA-Z0-9])[\p{L}\p{N}]|\p{Default_Ignorable_Code_Point}++"
)


def composed(text: str) -> str:
    """Returns a text with one form (NFKC) per letter and digit, without invisible characters."""
    if not NOT_LATIN.search(text):
        return text
    visible = _SIGN.sub(" ", _INVISIBLE.sub("", text))
    compatible = unicodedata.normalize("NFKC", visible)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), compatible)


def folded(text: str) -> str:
    """Returns a composed text in lower case, as terms and names are compared."""
    return composed(text).casefold()


@dataclass(frozen=True)
class ComposedText:
    """A text with composed letters and digits, and their places in the original."""

    text: str  # composed text; white space and punctuation are those of the original
    changed: Sequence[tuple[int, int]]  # spans of the composed text that differ from the original
    originals: Sequence[tuple[int, int]]  # the same spans in the original

    @classmethod
    def of(cls, text: str) -> Self:
        """Returns the composed form of a text."""
        if not NOT_LATIN.search(text):
            return cls(text, (), ())
        parts: list[str] = []
        changed: list[tuple[int, int]] = []
        originals: list[tuple[int, int]] = []
        length = end = 0
        compose = cache(composed)  # a text has few different clusters
        for match in _CLUSTER.finditer(text):
            cluster = match[0]
            if (plain := compose(cluster)) != cluster:
                length += match.start() - end
                parts += text[end : match.start()], plain
                end = match.end()
                changed.append((length, length + len(plain)))
                originals.append(match.span())
                length += len(plain)
        return cls("".join([*parts, text[end:]]), changed, originals)

    def span(self, start: int, end: int) -> Span:
        """Returns a span's span in the original, including complete letters that were composed."""
        first = bisect_right(self.changed, start, key=lambda pair: pair[0]) - 1
        last = bisect_left(self.changed, end, key=lambda pair: pair[0]) - 1
        return Span(self._original(first, start)[0], self._original(last, end)[1])

    def _original(self, index: int, offset: int) -> tuple[int, int]:
        """Returns the original's span for an offset at or after the start of a changed span."""
        if index < 0:
            return offset, offset
        if offset < self.changed[index][1]:
            return self.originals[index]
        place = self.originals[index][1] + offset - self.changed[index][1]
        return place, place
