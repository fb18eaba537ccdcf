"""Meetings' transcripts and plays: lines that begin with who speaks."""

from __future__ import annotations

import re
from collections.abc import Sequence

LINE = re.compile(r"(?:(?<![^\S\n])[^\S\n]++)?+\S[^\n]*+")  # with ink

_LABEL = re.compile(r"[^\S\n]*(?P<name>[^\W_][^:\n]{0,40}?)[^\S\n]*:(?=\s)")
_NAME_WORDS = 5
_LABELLED = 0.5  # part of the lines that begin with a speaker's name, in a script


def is_script(texts: Sequence[str]) -> bool:
    """Returns whether lines begin with who speaks, in half of the lines or more."""
    lines = labelled = 0
    for text in texts:
        for line in LINE.finditer(text):
            lines += 1
            labelled += label(text, *line.span()) is not None
    return lines > 1 and labelled >= _LABELLED * lines


def label(text: str, start: int, end: int) -> re.Match[str] | None:
    """Returns the speaker's name and the colon behind it, if the line has them; group `name`."""
    found = _LABEL.match(text, start, min(end + 1, len(text)))
    return found if found and len(found["name"].split()) <= _NAME_WORDS else None
