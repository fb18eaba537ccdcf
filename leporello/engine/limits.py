"""The numbers that a run's results may depend on; all of them stand in its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from leporello.core.records import JSON

_TIMEOUT = "example_timeout"  # decides about failures alone, so another value may go on


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is under way at once, and how a task is cut.

    Attributes:
        max_active: Examples of a shard and pipeline under way at most: the examples of a shard are
            worked at in groups of so many, whose documents are in memory together.
        window: Reads in one batch at most, unless the reader's class wants more.
        shard_examples: Examples with which a shard ends, with the document that reaches them.
        shard_bytes: Bytes of rows with which a shard ends likewise.
        example_timeout: Seconds that a call of a stage may take for each example in it; None is no
            limit.
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
