"""Numbers that limit a run, and the file of a deadline, which its driver watches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic_ns  # by name: a stage may replace those of `time`

from leporello.core.records import JSON

_TIMEOUT = "example_timeout"  # decides about failures alone, so another value may go on


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of batches and shards, and the time that an example may take.

    Attributes:
        max_active: Hold at most this many examples of a shard in memory at once, with their
            documents.
        window: Read at most this many inputs in one batch, unless the reader asks for more.
        shard_examples: End a shard with the document that reaches this many examples.
        shard_bytes: End a shard with the document that reaches this many bytes of rows.
        example_timeout: Fail an example whose call of a stage takes longer than this.
    """

    max_active: int = 128
    window: int = 32
    shard_examples: int = 128
    shard_bytes: int = 32_000_000
    example_timeout: float | None = None

    def differences(self, earlier: Mapping[str, JSON]) -> tuple[str, ...]:
        """Returns in which numbers an earlier run's limits, as in its manifest, differ."""
        names = [field.name for field in fields(self) if field.name != _TIMEOUT]
        return tuple(
            f"limits.{name}: {earlier[name]!r} -> {getattr(self, name)!r}"
            for name in names
            if name in earlier and earlier[name] != getattr(self, name)
        )


def is_overdue(file: Path) -> bool:
    """Says whether a process has outlasted the deadline in its file, and notes it there."""
    try:
        if file.stat().st_mtime_ns >= monotonic_ns():
            return False
        file.write_text("ended from outside\n")
    except FileNotFoundError:  # nothing of the shard is under way
        return False
    return True


def forget_deadline(file: Path) -> None:
    """Has a deadline of a process that is gone hold for no other one; what it came to stays."""
    with suppress(FileNotFoundError):
        os.utime(file)


def deadline_of(attempts: Path) -> Path:
    """Returns the file of a shard's deadline, by the file of its attempts."""
    return attempts.with_suffix(".deadline")
