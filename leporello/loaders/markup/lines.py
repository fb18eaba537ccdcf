"""Lines as places, for files that people look up by line."""

from __future__ import annotations

import re

from leporello.core.records import Place

_BREAK = re.compile(r"\r\n?|\n")
_MOST = 100_000  # places of a file; beyond, a place is of several lines


def line_starts(text: str) -> list[int]:
    """Returns where the lines begin, the first at 0; none begins where the text ends."""
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    return starts[:-1] if starts[-1] == len(text) else starts


def line_places(text: str) -> tuple[Place, ...]:
    """Returns a place for each line, `line 120`; in a huge text for each few, `lines 1–4`."""
    starts = line_starts(text)
    step = len(starts) // _MOST + 1
    ends = [*starts[step::step], len(text)]
    return tuple(
        Place(f"line {n + 1}" if step == 1 else f"lines {n + 1}–{n + step}", starts[n], end)
        for n, end in zip(range(0, len(starts), step), ends, strict=False)
    )
