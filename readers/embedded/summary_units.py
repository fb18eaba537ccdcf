"""Units of summaries: sentences, and parts of turns in meetings and scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from leporello.text.english.terms import LINE, label
from leporello.text.sentences import sentence_spans
from leporello.text.tokens import Words

_MARK = re.compile(r"\{[a-z]{3,20}\}|<[a-z]{3,20}>")  # {vocalsound}, <laugh>
_SKIPPED = re.compile(rf"(?:\s|{_MARK.pattern})*")
_MARKUP = re.compile(r"\s*(?:#{1,6}\s|\||```|~~~)")  # Markdown's headings, tables, code
_BLANK = re.compile(r"\s+")
_WORD = re.compile(r"\S{1,60}")
_UNSPACED = re.compile("[\u0e00-\u1dff\u2e80-\U0010ffff]")  # Thai, Chinese, Japanese and more
_INK = re.compile(r"[^\W_]")
_LONGEST = 80  # words of a sentence; longer ones, such as tables and lists, are cut
_JOINED = {True: 50, False: 25}  # maximum words of neighbouring sentences that are joined
WORD_LENGTH = 15  # maximum characters that count as one word


@dataclass(frozen=True, slots=True)
class SummaryUnit:
    """A sentence, or neighbouring ones of a turn or a paragraph."""

    text: int  # number of its text
    start: int
    end: int
    paragraph: int  # number of its paragraph, or of its turn, over all texts
    # First character of the speaker's name, and one past its colon; equal without a speaker.
    name: tuple[int, int] = (0, 0)


def units_of(texts: Sequence[str], *, script: bool, join: bool) -> list[SummaryUnit]:
    """Returns the units of texts with a letter or digit, in order; without headings and tables."""
    units: list[SummaryUnit] = []
    paragraph = 0
    for number, text in enumerate(texts):
        for start, end, name in _blocks(text, script=script):
            last = -1
            for a, b in _sentences(text, start, end, _JOINED[script] if join else 0):
                paragraph += last < 0 or "\n" in text[last:a]
                last = b
                units.append(SummaryUnit(number, a, b, paragraph, name))
    prose = [unit for unit in units if not _MARKUP.match(texts[unit.text], unit.start)]
    return prose or units


def clean(text: str) -> str:
    """Returns a text without transcribers' marks and with single spaces."""
    return _BLANK.sub(" ", _MARK.sub(" ", text)).strip()


def unshown(text: str) -> int:
    """Returns how many characters at the beginning `clean` removes: white space and marks."""
    beginning = _SKIPPED.match(text)
    return beginning.end() if beginning else 0


def word_count(text: str) -> int:
    """Returns the number of words, long ones several times, or of characters without spaces."""
    words = len(Words().offsets(text)) if _UNSPACED.search(text) else len(text.split())
    return max(words, len(text) // WORD_LENGTH)


def _blocks(text: str, *, script: bool) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Yields the turns of a script, each with the span of the name; otherwise the text."""
    if not script:
        yield 0, len(text), (0, 0)
        return
    for line in LINE.finditer(text):
        speaker = label(text, *line.span())
        if speaker:
            yield speaker.end(), line.end(), (speaker.start("name"), speaker.end())
        else:
            yield *line.span(), (0, 0)


def _sentences(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    """Yields sentences with a letter or digit; neighbours are joined up to `most` words."""
    first = last = words = 0
    for a, b in sentence_spans(text[start:end]):
        for c, d in _pieces(text, start + a, start + b):
            cleaned = clean(text[c:d])
            if not _INK.search(cleaned):
                continue
            size = word_count(cleaned)
            if last and words + size <= most and "\n" not in text[last:c]:
                last, words = d, words + size
                continue
            if last:
                yield first, last
            first, last, words = c, d, size
    if last:
        yield first, last


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yields a sentence, or pieces of its lines if it is too long."""
    if len(_WORD.findall(text, start, end)) <= _LONGEST:
        yield start, end
        return
    for line in LINE.finditer(text, start, end):
        words = [word.start() for word in _WORD.finditer(text, *line.span())]
        for first, last in pairwise([words[0], *words[_LONGEST::_LONGEST], line.end()]):
            yield first, first + len(text[first:last].rstrip())
