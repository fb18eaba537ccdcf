"""Joins lines of pages to one text, with paragraphs, and joins hyphenated words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from leporello.loaders.pdf.layout import PageLine
from leporello.loaders.pdf.words import HYPHEN

_WORD = re.compile(r"[^\W\d_]+(?:[-‐’'][^\W\d_]+)*")
_HYPHENATED = re.compile(rf"(?<![^\W_])([^\W_]++)[-‐{HYPHEN}]$")
_PARTED = re.compile(rf"(?<![^\W\d_])([^\W\d_]++){HYPHEN}(?=([^\W\d_]++))")
_BEGINNING = re.compile(r"[^\W\d_]+")
_LEADERS = re.compile(r" ?(?:\. ?){8,}+(\t|\Z)?")  # dots between a label and its figure
_ENDS = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*$")


@dataclass(slots=True)
class Written:
    """Text of all pages.

    Attributes:
        text: Text of all pages.
        pages: First character of each page.
        starts: First character of each line, page by page.
    """

    text: str
    pages: list[int] = field(default_factory=list)
    starts: list[list[int]] = field(default_factory=list)


def write(pages: Sequence[Sequence[PageLine]]) -> Written:
    """Joins the lines of pages to one text, with empty lines between paragraphs.

    A sentence may continue in the next column or page. A hyphen at the end of a line is removed if
    the joined word occurs elsewhere in the document, or if one of its parts occurs nowhere.
    """
    vocabulary = _vocabulary(line.text for page in pages for line in page)
    parts: list[str] = []
    written = Written("")
    length, last = 0, ""
    for page in pages:
        starts: list[int] = []
        for number, line in enumerate(page):
            between, keep = _between(last, line, vocabulary, first=number == 0)
            if parts and not keep:
                parts[-1] = parts[-1][:-1]
                length -= 1
            text = _joined(line.text, vocabulary)
            starts.append(length + len(between))
            parts += [between, text]
            length += len(between) + len(text)
            last = line.text
        written.pages.append(starts[0] if starts else length)
        written.starts.append(starts)
    written.text = "".join(parts)
    return written


def _joined(text: str, vocabulary: set[str]) -> str:
    """Removes hyphens between the lines of a cell, and leading dots."""

    def join(parts: re.Match[str]) -> str:
        return parts[1] + ("" if _is_one_word(parts[1], parts[2], vocabulary) else "-")

    if "...." in text or ". . . ." in text:
        text = _LEADERS.sub(lambda dots: " … " if dots[1] is None else dots[1], text)
    return _PARTED.sub(join, text).replace(HYPHEN, "-") if HYPHEN in text else text


def _between(last: str, line: PageLine, vocabulary: set[str], *, first: bool) -> tuple[str, bool]:
    """Returns the separator of two lines, and whether a hyphen before it stays."""
    if not last:
        return "", True
    before, after = _HYPHENATED.search(last), _BEGINNING.match(line.text)
    if before and after and "\t" not in last and "\t" not in line.text:
        return "", not _is_one_word(before[1], after[0], vocabulary)
    continues = after is not None and after[0][0].islower() and not _ENDS.search(last)
    opens = line.opens and not (continues and (first or "\t" not in line.text + last))
    return ("\n\n" if opens or (first and not continues) else "\n"), True


def _is_one_word(before: str, after: str, vocabulary: set[str]) -> bool:
    """Returns whether only the end of the line requires the hyphen between two parts."""
    if len(before) == 1 or not before[-1].islower() or not after[0].islower():
        return False  # x-axis, DNA-binding, Chambers-Smith
    first, second = before.lower(), after.lower()
    if first + second in vocabulary:
        return True
    return f"{first}-{second}" not in vocabulary and not {first, second} <= vocabulary


def _vocabulary(lines: Iterable[str]) -> set[str]:
    """Returns the words in small letters, except those that the end of a line may split."""
    vocabulary: set[str] = set()
    parted = False
    for line in lines:
        words = _WORD.findall(_PARTED.sub(" ", line.lower()) if HYPHEN in line else line.lower())
        hyphenated = _HYPHENATED.search(line) is not None
        vocabulary.update(words[parted : len(words) - hyphenated])
        parted = hyphenated
    return vocabulary
