"""Limits of a run, and the deadline file of a shard, which the driver watches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic_ns  # by name: a stage may replace functions of `time`

from leporello.core.records import JSON

_TIMEOUT = "example_timeout"  # affects only failures, so a run may resume with another value


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of batches and shards, and the time that an example may take.

    Attributes:
        max_active: Hold at most this many examples of a shard in memory at once, with their
            documents.
        window: Read at most this many inputs in one batch, unless the reader prefers more.
        shard_examples: Split the task into shards, each for one worker: a shard ends with the
            document that reaches this many examples.
        shard_bytes: End a shard also with the document at which the task's rows in the shard reach
            this many bytes.
        example_timeout: Fail an example if a call of a stage takes longer than this.
    """

    # With `ReadEach`, 128 examples fill 98 % of the places in batches of 32. All documents of a
    # group are open together, which raised peak memory from 114 to 209 MB (decision 49).
    max_active: int = 128
    window: int = 32
    shard_examples: int = 128
    shard_bytes: int = 32_000_000
    example_timeout: float | None = None

    def differences(self, earlier: Mapping[str, JSON]) -> tuple[str, ...]:
        """Returns the differences from an earlier run's limits, as its manifest contains them."""
        # Other sizes form other batches, in which the same prompt can decode to another text
        # (decision 3).
        names = [field.name for field in fields(self) if field.name != _TIMEOUT]
        return tuple(
            f"limits.{name}: {earlier[name]!r} -> {getattr(self, name)!r}"
            for name in names
            if name in earlier and earlier[name] != getattr(self, name)
        )


def is_overdue(file: Path) -> bool:
    """Returns whether a process has exceeded the deadline in its file; records it there."""
    try:
        # A file's time instead of its content: setting it is one system call, and never half
        # written.
        if file.stat().st_mtime_ns >= monotonic_ns():
            return False
        file.write_text("ended from outside\n")
    except FileNotFoundError:  # no process works on the shard
        return False
    return True


def forget_deadline(file: Path) -> None:
    """Clears the deadline of a process that has ended; the content of the file stays."""
    with suppress(FileNotFoundError):
        os.utime(file)


def deadline_of(attempts: Path) -> Path:
    """Returns the file of a shard's deadline, by the file of its attempts."""
    return attempts.with_suffix(".deadline")
