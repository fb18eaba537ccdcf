"""Sizes of batches, groups and shards, and the time limit of examples."""

from dataclasses import dataclass


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
        example_timeout: Time limit for each call of a stage; beyond it, the example fails.
    """

    # With `ReadEach`, 128 examples fill 98 % of the places in batches of 32. All documents of a
    # group are open together, which raised peak memory from 114 to 209 MB (decision 49).
    max_active: int = 128
    window: int = 32
    shard_examples: int = 128
    shard_bytes: int = 32_000_000
    example_timeout: float | None = None
