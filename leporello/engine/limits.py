"""The numbers that a run's results may depend on; all of them stand in its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

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
