"""Lines that look like headings, by their words and by what stands around them.

Every line is looked at once, and only short ones closely, so that time grows linearly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from leporello.text.headings.labels import Label, is_name, label_of
from leporello.text.headings.lines import (
    ALONE,
    INDENT,
    LONGEST,
    PARAGRAPH,
    HeadingCandidate,
    TextLines,
    is_title,
)

_SHORTEST = 4  # letters of capitals that are a heading; initials are none
_CAPTION = re.compile(
    r"(?:fig(?:ure)?|tab(?:le)?|listing|plate|exhibit|chart|box|abb(?:ildung)?|tabelle|tableau)"
    r"\b[. ]*[\dIVX]",
    re.IGNORECASE,
)
_SCENE = re.compile(r"(?:INT|EXT|EST|I/E)[./ ]|(?:CUT|FADE|DISSOLVE|SMASH)\b")


def guessed(lines: TextLines) -> Iterator[HeadingCandidate]:
    """Yields the lines that look like headings, by their words and by what stands around them."""
    for line, text in enumerate(lines.texts):
        if not text or len(text) > LONGEST or text[0].islower() or line in lines.fenced:
            continue
        if (text[0].isalnum() or text[0] in "“¿¡") and (candidate := _guessed(lines, line, text)):
            yield candidate


def _guessed(lines: TextLines, line: int, text: str) -> HeadingCandidate | None:
    if not lines.is_before_clear(line) or _CAPTION.match(text) or lines.is_listed(line):
        return None
    kind = _kind(lines, line, text)
    label = label_of(text)
    if label and (labelled := _labelled(lines, line, label)):
        return replace(labelled, otherwise=kind, level=_depth(lines, line))
    return (
        HeadingCandidate(line, text, kind, _depth(lines, line), None, lines.apart(line))
        if kind
        else None
    )


def _kind(lines: TextLines, line: int, text: str) -> str:
    """Returns what a line looks like whatever number it has; nothing, if it is no heading."""
    if is_name(text) and text[-1] not in ",;!?":
        return "name"
    if lines.at(line - 1) or not is_title(text):
        return ""
    if _is_shouted(text) and lines.indents[line] <= INDENT and _heads_text(lines, line):
        return "caps"
    below = len(lines.at(line + 1))
    return "title" if lines.has_long_paragraphs and (not below or 2 * below > PARAGRAPH) else ""


def _depth(lines: TextLines, line: int) -> float:
    """Returns how deep a heading lies where blanks before it say so, or `A ::: B` in it."""
    return lines.indents[line] + lines.texts[line].count(" ::: ") / 10


def _labelled(lines: TextLines, line: int, label: Label) -> HeadingCandidate | None:
    text = lines.texts[line]
    sound = is_title(label.title) if label.title else bool(label.word or label.style == "I")
    if not sound or not (lines.is_after_clear(line) or is_name(label.title)):
        return None
    apart = lines.apart(line)
    if label.word:
        return HeadingCandidate(line, text, "word", 0, label, apart) if apart else None
    bare = not label.title or (label.style != "1" and label.depth == 1)
    if lines.indents[line] > INDENT * (4 if bare else 1) or (bare and apart < ALONE):
        return None
    return HeadingCandidate(line, text, "number", 0, label, apart)


def _is_shouted(text: str) -> bool:
    """Says whether a line is all capitals, and no scene of a screenplay."""
    letters = sum(character.isalpha() for character in text)
    enough = letters >= _SHORTEST and 2 * letters > len(text)
    return enough and text[0].isalnum() and text.isupper() and not _SCENE.match(text)


def _heads_text(lines: TextLines, line: int) -> bool:
    """Says whether a blank line follows, or text that is indented more, as in a manual's page."""
    below = line + 1
    return not lines.at(below) or (
        lines.indents[below] > lines.indents[line] and lines.at(below)[:1] != "("
    )
