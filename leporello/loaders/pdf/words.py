"""Reads the words of a page from pdfium, with their positions and raised figures."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING
from unicodedata import normalize

from leporello.loaders.pdf.characters import Characters, Word
from leporello.loaders.pdf.fragments import (
    SLANTED,
    SMALLER,
    TOUCHING,
    Fragment,
    attached,
    fraction,
    level,
)
from leporello.loaders.pdf.objects import PageObjects

if TYPE_CHECKING:
    from leporello.loaders.pdf.drawn import Walls

HYPHEN = "\u00ad"  # ends a fragment if its word may continue in the next line

# Pdfium marks a hyphen that ends a line, and leaves out the line's end.
_WORD = re.compile("[^\0\2\ufffe\\s]+[\2\ufffe]?|[\2\ufffe]")
# Words that pdfium may have joined, and the least gap between words in heights of the type.
_SUSPECT = re.compile(r"[a-z](?:[.,;:)][A-Za-z]{2}|[a-z][A-Z][a-z])")
_SUSPECTS, _WORD_GAP = 12, 0.1
_UNKNOWN = "\ufffd\ue000-\uf8ff\ud800-\udfff\1-\x08\x0e-\x1f\ufff0-\ufffb"
_UNDECODABLE = re.compile(f"[{_UNKNOWN}]+")
# Accents that TeX prints over the next letter.
_ACCENTS = str.maketrans(
    "´ˆ˜¯˘˙¨˚˝ˇ¸˛", "\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327\u0328"
)
_ACCENTED = re.compile(r"([´¯˘˙¨˚˝ˇ¸˛]|(?<=[^\W\d_])[ˆ˜])([^\W\d_])")
# Characters of all that; most pages have hyphens.
_ODD = re.compile(f"[ﬀ-ﬆ\u00ad\2\ufffe{_UNKNOWN}´ˆ˜¯˘˙¨˚˝ˇ¸˛]")
_MARK = re.compile("[\2\ufffe]")
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", HYPHEN: ""}
)
_GAP = 0.8  # of the type's size: wider gaps may separate cells or columns
_NARROW = 0.42  # of the type's size: wider gaps may separate narrow columns
_SAME_LINE = 0.45  # of the type's size: smaller vertical distances are within a line
_RAISED_LINE = 0.65  # the same for smaller type
_FLAT = 0.08  # of the type's height: larger differences are raised or lowered characters
# Figures within a word that may be raised or lowered: beside letters or signs.
_FIGURE = re.compile(r"\d(?:(?=[^\s\d])|(?<=[^\W\d_]\d))")
_INITIAL = 0.45  # of a large initial's height: the type after it


class WordReader:
    """Collects the words of a page with as few calls of pdfium as possible."""

    def __init__(self, characters: Characters, objects: PageObjects, walls: Walls | None) -> None:
        self._characters, self._objects, self._walls = characters, objects, walls
        self._text, self._odd = characters.text, _ODD.search(characters.text) is not None
        # Fragments and their directions, in multiples of 90°; 4 if slanted.
        self.fragments: list[tuple[Fragment, int]] = []
        self.undecodable = self.hidden = 0  # characters without a known letter; not seen
        self._ends: list[int] = []  # number of each fragment's last character
        self._height = self._tolerance = 0.0  # of the last fragment's type
        self._level = 0  # of the last character
        self._last = (0.0, 0.0, 0.0, 0.0)  # the last word

    def read(self) -> None:
        """Reads all words."""
        odd, characters = self._odd, self._characters
        text = f"{self._text}\n"  # each line has an end
        fragments, extends = self.fragments, self._extends
        is_certain = not self._objects.hidden and not self._objects.doubtful  # all text is seen
        breaks = self._breaks(text)
        broken = frozenset(breaks)
        end = turn = 0
        line_end = text.find("\n")
        for at, stop in _spans(text, breaks):
            opens = not fragments or (line_end < at and at not in broken)
            if opens or (odd and text[end - 1] in "\2\ufffe"):
                turn = characters.turn(at)
            if not is_certain and not self._objects.is_seen(characters, at, stop - 1):
                self.hidden += stop - at
                continue
            word = characters.place(at, stop - 1, turn)
            if turn or opens or self._level or not extends(at, stop - 1, word):
                self._add(at, stop - 1, turn, word, at not in broken and " " not in text[end:at])
            end = stop
            if line_end < end:
                line_end = text.find("\n", end)
        for (fragment, _), last in zip(fragments, self._ends, strict=True):
            fragment.bold = fragment.bold and characters.type(last)[1]

    def _breaks(self, text: str) -> Sequence[int]:
        """Returns where words begin without a blank, which pdfium leaves out of tight type."""
        suspects = {match[0]: match.span() for match in _SUSPECT.finditer(text)}
        if not any(self._gaps(*span) for span in islice(suspects.values(), _SUSPECTS)):
            return ()
        return [at for match in _WORD.finditer(text) for at in self._gaps(*match.span())]

    def _gaps(self, first: int, stop: int) -> list[int]:
        """Returns the characters after gaps in a word, unless all its letters are apart."""
        gaps, right = list[int](), math.inf
        for at in range(first, stop):
            west, north, east, south = self._characters.box(at)
            if west - right > _WORD_GAP * (north - south):
                gaps.append(at)
            right = east
        return gaps if 3 * len(gaps) <= stop - first else []

    def _add(self, first: int, last: int, turn: int, place: Word, touches: bool) -> None:
        """Adds a word; upright lines divide it where letters are apart."""
        x0, x1, y, height = place
        if turn or not self._walls or first == last or not self._walls.part(x0, x1, y):
            self._add_word(first, last, turn, place, touches)
            return
        right, edges = math.inf, [first]
        for at in range(first, last + 1):
            west, _, east, _ = self._characters.box(at)
            if west - right > _WORD_GAP * height and self._walls.part(right, west, y):
                edges.append(at)
            right = east
        for begin, stop in pairwise([*edges, last + 1]):
            self._add_part(begin, stop - 1, 0, touches and begin == first)

    def _add_part(self, first: int, last: int, turn: int, touches: bool) -> None:
        place = self._characters.place(first, last, turn)
        self._add_word(first, last, turn, place, touches)

    def _extends(self, first: int, last: int, place: Word) -> bool:
        """Adds a word to the last fragment if it follows on the same baseline: most words."""
        tolerance = self._tolerance
        x0, x1, y, height = place
        before, turn = self.fragments[-1]
        size, end = before.size, before.x1
        gap = x0 - end
        if (
            turn
            or not -tolerance < y - before.y < tolerance
            or not -size / 2 < gap < _GAP * size
            or (self._walls is not None and self._walls.part(end, x1, y))
        ):
            return False
        if not -tolerance < height - self._height < tolerance and last > first:
            if abs(self._characters.baseline(last, 0) - y) > tolerance:
                return False
            if height > SMALLER * self._height:  # other type
                self._height, self._tolerance = height, _FLAT * height
        word = self._text[first : last + 1]
        has_figures = not word.isalpha() and _FIGURE.search(word, 1)
        if has_figures and not self._is_level(first, last, 0, y):
            return False
        if self._odd and not (word.isascii() and word.isprintable()):
            word = self._decoded(word, alone=True)
        if word:
            if gap > _NARROW * size:
                before.gaps = (*before.gaps, (len(before.text), end, x0))
            before.text += f" {word}"
            if x1 > end:
                before.x1 = x1
            self._ends[-1], self._last = last, place
        return True

    def _add_word(self, first: int, last: int, turn: int, place: Word, touches: bool) -> None:
        """Adds a word to the last fragment if it follows closely, otherwise begins a fragment."""
        x0, _, y, height = place
        touches = touches and height > _INITIAL * self._height
        before = self._before((x0, y), turn, touches, height < SMALLER * self._height)
        if before is None:
            self._height, self._tolerance = height, _FLAT * height
        elif touches and self._is_mark(before, y, height):
            before.text, self._level = attached("", 0, before.text, 1), 1
            before.y, before.size = y, self._characters.type(first)[0]
            self._height, self._tolerance = height, _FLAT * height
        shifted = before is not None and abs(y - before.y) > _FLAT * before.size
        touches = touches and before is not None and (self._level != 0 or shifted)
        base, runs = first, [(self._text[first : last + 1], 0)]
        if turn < SLANTED and (touches or shifted or not self._is_level(first, last, turn, y)):
            if (angle := self._characters.turn(first)) != turn:  # it changed within a line
                self._add_part(first, last, angle, touches=False)
                return
            glyphs = [self._characters.place(at, at, turn)[2:] for at in range(first, last + 1)]
            for at, (a, b) in enumerate(pairwise(glyphs), first):
                if abs(a[0] - b[0]) > max(a[1], b[1]):  # pdfium left out the end of a line
                    self._add_part(first, at, turn, touches)
                    self._add_part(at + 1, last, turn, touches=False)
                    return
            base, runs = self._runs(glyphs, first, before.y if before and shifted else None)
        if self._odd and not (runs[0][0].isascii() and runs[0][0].isprintable() and len(runs) == 1):
            alone = len(runs) == 1 and not touches
            runs = [(text, now) for raw, now in runs if (text := self._decoded(raw, alone))]
        if runs:
            before = before or self._begin(base, turn, (x0, y if base == first else None))
            self._append(before, runs, touches, place)
            self._ends[-1] = last

    def _before(
        self, begins: tuple[float, float], turn: int, touches: bool, is_smaller: bool
    ) -> Fragment | None:
        """Returns the last fragment if a word follows it in its line."""
        if not self.fragments or self.fragments[-1][1] != turn:
            return None
        before = self.fragments[-1][0]
        (x0, y), size = begins, before.size
        gap, shift = x0 - before.x1, abs(y - before.y)
        is_near = touches and abs(gap) < TOUCHING * size and shift < size
        most = _RAISED_LINE if is_smaller else _SAME_LINE
        if not is_near and not (-size / 2 < gap < _GAP * size and shift < most * size):
            return None
        is_parted = self._walls and not turn and self._walls.part(before.x1, x0, y)
        return None if is_parted else before

    def _is_mark(self, before: Fragment, y: float, height: float) -> bool:
        """Returns whether the last fragment is a raised word before larger type on its baseline."""
        return (
            " " not in before.text
            and self._height < SMALLER * height
            and y - before.y > _FLAT * height
        )

    def _append(
        self, before: Fragment, runs: Sequence[tuple[str, int]], touches: bool, place: Word
    ) -> None:
        """Adds a word at a place."""
        x0, x1, y, _ = place
        if before.text:
            west, east, above, _ = self._last
            reach = _SAME_LINE * before.size
            is_under = y - above > reach and abs(x0 + x1 - west - east) < reach
            if is_under and (text := fraction(before.text, runs)):
                before.text, self._level, runs = text, 0, ()
            elif not touches:
                text, self._level = runs[0]
                before.text, runs = f"{before.text} {text}", runs[1:]
        for text, now in runs:
            before.text = attached(before.text, self._level, text, now)
            self._level = now
        before.x1 = max(x1, before.x1)
        self._last = place

    def _begin(self, base: int, turn: int, place: tuple[float, float | None]) -> Fragment:
        (x0, y), (size, bold) = place, self._characters.type(base)
        y = self._characters.baseline(base, turn) if y is None else y
        fragment = Fragment("", x0, x0, y, size, bold, len(self.fragments))
        self.fragments.append((fragment, turn))
        self._ends.append(base)
        self._level = 0
        return fragment

    def _is_level(self, first: int, last: int, turn: int, y: float) -> bool:
        """Returns whether the end of a word, and figures within it, are on its baseline."""
        if first == last:
            return True
        tolerance, baseline = self._tolerance, self._characters.baseline
        if abs(baseline(last, turn) - y) > tolerance:
            return False
        for figure in _FIGURE.finditer(self._text, first + 1, last + 1):
            if abs(baseline(figure.start(), turn) - y) > tolerance:
                return False
        return True

    def _runs(
        self, glyphs: Sequence[tuple[float, float]], first: int, baseline: float | None
    ) -> tuple[int, list[tuple[str, int]]]:
        """Returns a character on the baseline, and runs of characters of one level.

        A glyph is the baseline of a character and its height.
        """
        y, usual = main = max(glyphs, key=itemgetter(1))
        if baseline is not None:
            usual, y = self._height, baseline
        runs: list[tuple[str, int]] = []
        for at, (below, height) in enumerate(glyphs, first):
            now = level(y - below, height, usual)
            if runs and runs[-1][1] == now:
                runs[-1] = runs[-1][0] + self._text[at], now
            else:
                runs.append((self._text[at], now))
        if baseline is None and (usual > SMALLER * self._height or len(runs) > 1):
            self._height, self._tolerance = usual, _FLAT * usual
        return first + glyphs.index(main), runs

    def _decoded(self, word: str, alone: bool) -> str:
        """Decodes text; each run of undecodable characters becomes U+FFFD, or nothing if alone."""
        word = _MARK.sub(HYPHEN, word.translate(_LIGATURES))
        word = _ACCENTED.sub(_composed, word)
        if not _UNDECODABLE.search(word):
            return word
        word = word.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        self.undecodable += sum(map(len, _UNDECODABLE.findall(word)))
        word = _UNDECODABLE.sub("\ufffd", word)
        return "" if alone and word == "\ufffd" else word


def _spans(text: str, breaks: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Returns the spans of words."""
    words = map(re.Match.span, _WORD.finditer(text))
    if not breaks:
        return words
    return chain.from_iterable(
        pairwise([start, *breaks[bisect_right(breaks, start) : bisect_left(breaks, stop)], stop])
        for start, stop in words
    )


def _composed(accented: re.Match[str]) -> str:
    letter = normalize("NFC", accented[2].replace("ı", "i") + accented[1].translate(_ACCENTS))
    return letter if len(letter) == 1 else accented[0]
