"""What a run works with, whatever it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leporello.engine.limits import Limits
from leporello.engine.progress import Progress
from leporello.jobs.directory import RunDirectory

if TYPE_CHECKING:
    from leporello.cache.store import Cache
    from leporello.storage.runs import RemoteRun


@dataclass(frozen=True)
class RunContext:
    """What a run works with.

    Attributes:
        directory: Directory of the run.
        limits: Numbers that results depend on.
        limit: Examples a task at most.
        cache: Cache of what is derived; None caches nothing.
        check: Function that is called between steps; raises `Stopped` to end the run.
        remote: The run at a URL, of which the directory is a copy; None if it is at none.
        supervised: Whether a run of 0 workers has one where a stage may end or hang its process.
    """

    directory: RunDirectory
    limits: Limits
    limit: int | None
    cache: Cache | None
    check: Callable[[Progress], None]
    remote: RemoteRun | None = None
    supervised: bool = field(default_factory=lambda: not os.environ.get("LEPORELLO_UNSUPERVISED"))
