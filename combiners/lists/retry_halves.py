"""Reads some of which may fail, so that one does not cost the others."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias

from leporello.core.records import Output, Read

# What came of a read: its output, or why it failed.
Attempt: TypeAlias = Output | Exception


def attempt(reads: Sequence[Read]) -> Generator[Sequence[Read], list[Output], list[Attempt]]:
    """Yields reads; where one fails, again in halves, until what fails stands alone."""
    if not reads:
        return []
    try:
        return [*(yield reads)]
    except Exception as error:  # whatever the reader raised is thrown in here
        if len(reads) == 1:
            return [error]
    # One read that fails hides the others of its round (decision 22).
    middle = len(reads) // 2
    first = yield from attempt(reads[:middle])
    return first + (yield from attempt(reads[middle:]))


def succeeded(attempts: Sequence[Attempt]) -> list[Output | None]:
    """Returns the outputs, None for what failed.

    Raises:
        Exception: All did; the first one's error.
    """
    outputs = [None if isinstance(one, Exception) else one for one in attempts]
    for first in attempts[:1]:
        if isinstance(first, Exception) and not any(outputs):
            raise first
    return outputs
