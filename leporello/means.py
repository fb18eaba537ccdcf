"""What a run works with, whatever it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leporello.directory import RunDirectory
from leporello.engine import Limits
from leporello.progress import Progress

if TYPE_CHECKING:
    from leporello.cache import Cache

__all__ = ["Means"]


@dataclass(frozen=True)
class Means:
    """What a run works with.

    Attributes:
        directory: Of the run.
        limits: How much is under way at once.
        limit: Examples a task at most.
        cache: None keeps nothing.
        check: Called between steps; raises `Stopped` to end the run.
    """

    directory: RunDirectory
    limits: Limits
    limit: int | None
    cache: Cache | None
    check: Callable[[Progress], None]
