"""What a summary is made of: sentences, and of meetings and scripts parts of turns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from leporello.text.english.scripts import LINE, label
from leporello.text.sentences import sentence_spans
from leporello.text.tokens import Words

_MARK = re.compile(r"\{[a-z]{3,20}\}|<[a-z]{3,20}>")  # {vocalsound}, <laugh>
_UNSHOWN = re.compile(rf"(?:\s|{_MARK.pattern})*")
_MARKUP = re.compile(r"\s*(?:#{1,6}\s|\||```|~~~)")  # Markdown's headings, tables, code
_BLANK = re.compile(r"\s+")
_WORD = re.compile(r"\S{1,60}")
_UNSPACED = re.compile("[\u0e00-\u1dff\u2e80-\U0010ffff]")  # Thai, Chinese, Japanese and more
_INK = re.compile(r"[^\W_]")
_LONGEST = 80  # words of a sentence; what is longer (a table, a list) is cut
_TOGETHER = {True: 50, False: 25}  # words up to which neighbouring sentences stay together
WORD_LENGTH = 15  # characters that count as a word at most


@dataclass(frozen=True, slots=True)
class SummaryUnit:
    """A sentence, or neighbouring ones of a turn or a paragraph.

    Attributes:
        text: Number of the text that it stands in.
        start: Its first character there.
        end: One past its last character.
        paragraph: Number of its paragraph, or of its turn, over all texts.
        name: First character of the speaker's name, and one past its colon; equal where nobody
            speaks.
    """

    text: int
    start: int
    end: int
    paragraph: int
    name: tuple[int, int] = (0, 0)


def units_of(texts: Sequence[str], *, script: bool, join: bool) -> list[SummaryUnit]:
    """Returns the units of texts that hold a letter or a digit, in order; no headings and tables.

    Args:
        texts: Texts in reading order.
        script: Whether the lines are turns.
        join: Whether neighbouring short sentences are one unit.
    """
    found: list[SummaryUnit] = []
    paragraph = 0
    for number, text in enumerate(texts):
        for start, end, name in _blocks(text, script=script):
            last = -1
            for a, b in _stretches(text, start, end, _TOGETHER[script] if join else 0):
                paragraph += last < 0 or "\n" in text[last:a]
                last = b
                found.append(SummaryUnit(number, a, b, paragraph, name))
    said = [unit for unit in found if not _MARKUP.match(texts[unit.text], unit.start)]
    return said or found


def clean(text: str) -> str:
    """Returns a slice as it is shown: without transcribers' marks, white space made single."""
    return _BLANK.sub(" ", _MARK.sub(" ", text)).strip()


def unshown(text: str) -> int:
    """Returns how many characters at the beginning are not shown: white space and marks."""
    beginning = _UNSHOWN.match(text)
    return beginning.end() if beginning else 0


def word_count(text: str) -> int:
    """Returns the number of words, of characters in scripts without spaces; a huge word is more."""
    words = len(Words().offsets(text)) if _UNSPACED.search(text) else len(text.split())
    return max(words, len(text) // WORD_LENGTH)


def _blocks(text: str, *, script: bool) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Yields what is said in turns, with where the name stands; else the whole text."""
    if not script:
        yield 0, len(text), (0, 0)
        return
    for line in LINE.finditer(text):
        found = label(text, *line.span())
        if found:
            yield found.end(), line.end(), (found.start("name"), found.end())
        else:
            yield *line.span(), (0, 0)


def _stretches(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Yields sentences, neighbours joined up to so many words, without what has no letter."""
    first = last = words = 0
    for a, b in sentence_spans(text[start:end]):
        for c, d in _pieces(text, start + a, start + b):
            shown = clean(text[c:d])
            if not _INK.search(shown):
                continue
            size = word_count(shown)
            if last and words + size <= most and "\n" not in text[last:c]:
                last, words = d, words + size
                continue
            if last:
                yield first, last
            first, last, words = c, d, size
    if last:
        yield first, last


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields a sentence, or lines and parts of them where it is too long."""
    if len(_WORD.findall(text, start, end)) <= _LONGEST:
        yield start, end
        return
    for line in LINE.finditer(text, start, end):
        words = [word.start() for word in _WORD.finditer(text, *line.span())]
        for first, last in pairwise([words[0], *words[_LONGEST::_LONGEST], line.end()]):
            yield first, first + len(text[first:last].rstrip())
