"""Recognises transcripts of meetings and plays by speakers' names at the start of lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

LINE = re.compile(r"(?:(?<![^\S\n])[^\S\n]++)?+\S[^\n]*+")  # not blank

_LABEL = re.compile(r"[^\S\n]*(?P<name>[^\W_][^:\n]{0,40}?)[^\S\n]*:(?=\s)")
# More words are a sentence, which can also end with a colon.
_NAME_WORDS = 5
_LABELLED = 0.5  # share of the lines of a script that begin with a speaker's name


def is_script(texts: Sequence[str]) -> bool:
    """Returns whether at least half of the lines begin with a speaker's name."""
    lines = labelled = 0
    for text in texts:
        for line in LINE.finditer(text):
            # Half of the lines, not all: long speeches continue without a name.
            lines += 1
            labelled += label(text, *line.span()) is not None
    return lines > 1 and labelled >= _LABELLED * lines


def label(text: str, start: int, end: int) -> re.Match[str] | None:
    """Matches a speaker's name, group `name`, and a colon at the start of a line."""
    match = _LABEL.match(text, start, min(end + 1, len(text)))
    return match if match and len(match["name"].split()) <= _NAME_WORDS else None
