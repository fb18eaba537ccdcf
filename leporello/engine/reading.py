"""Readers as the engine calls them: batches over many examples, caching, retries and time-outs."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from json import dumps  # by name: a stage may replace functions of modules
from operator import attrgetter
from time import monotonic  # by name: a stage may replace functions of `time`
from typing import Any

from leporello.cache.dependencies import fingerprint
from leporello.config import Pipeline
from leporello.core.calls.contracts import batching_of, load_models
from leporello.core.calls.derived import content_of
from leporello.core.calls.stage_calls import read as call_reader
from leporello.core.errors import ReadError
from leporello.core.protocols import ANSWER
from leporello.core.records import JSON, CacheProtocol, Document, Index, Output, Read, Reply
from leporello.engine.failures import Attempts, ExampleError, isolated
from leporello.engine.limits import Limits
from leporello.engine.results.serialization import output_row, pair_of, reply_of

_COUNTED = ("seconds", "reads", "cached", "input_tokens", "output_tokens")


@dataclass
class ReadStatistics:
    """Statistics of the reads of one reader."""

    seconds: float = 0.0  # seconds spent in the reader, without the time to load its model
    reads: int = 0  # number of reads, without those whose outputs were cached
    cached: int = 0  # number of reads whose outputs were cached by an earlier run
    input_tokens: int = 0  # tokens of the prompts
    output_tokens: int = 0  # tokens that the reader generated
    # Counts of its micro-batches, if it forms any: `batches`; `prompt_tokens`, in which equal
    # prompts count once; `padded_tokens`, in which each prompt counts as the longest of its batch;
    # `halvings`, the number of times that batches were made smaller because memory ran out.
    packed: Counter[str] = field(default_factory=Counter)

    def add(self, other: ReadStatistics) -> None:
        """Adds the statistics of more reads."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.packed.update(other.packed)

    def row(self) -> dict[str, JSON]:
        """Returns the statistics and their rates, for timings.json."""
        row = {name: getattr(self, name) for name in _COUNTED}
        for name in ("input_tokens", "output_tokens"):
            row[f"{name}_per_second"] = round(row[name] / self.seconds, 1) if self.seconds else 0
        if packed := self.packed:
            padding = 1 - packed["prompt_tokens"] / (packed["padded_tokens"] or 1)
            row |= {"batches": packed["batches"], "padding": round(padding, 4)}
            row["halvings"] = packed["halvings"]
        return row


@dataclass
class BatchReader:
    """A reader stage that reads batches: isolates faulty reads and reuses cached outputs."""

    reader: Any
    readers: BatchReaders  # readers of the pipeline, whose cache, limits and log apply
    # Statistics of the reads so far.
    statistics: ReadStatistics = field(default_factory=ReadStatistics)
    # Notes, by index, on reads of the last batch that succeeded only in smaller batches.
    cured: dict[int, str] = field(default_factory=dict)
    _loaded: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def schedules_itself(self) -> bool:
        """Whether the reader expects all waiting reads of a shard in one call."""
        return bool(getattr(self.reader, "schedules_itself", False))

    @property
    def batch_size(self) -> int:
        """Number of reads in a batch."""
        if self.schedules_itself:
            return sys.maxsize
        preferred: int = getattr(type(self.reader), "window_size", 0)
        return max(self.readers.limits.window, preferred)

    @property
    def slots(self) -> int:
        """Number of single reads that may run at once; 0 for a reader of batches."""
        independent = not getattr(self.reader, "depends_on_batch", True)
        return int(getattr(self.reader, "slots", 0)) if independent else 0

    @property
    def is_used(self) -> bool:
        """Whether it has returned any output."""
        return bool(self.statistics.reads or self.statistics.cached)

    def load(self) -> None:
        """Loads the reader's models; no time limit applies."""
        if not self._loaded:
            with self.readers.attempts.loading():
                load_models(self.reader)
            self._loaded = True

    def read(self, batch: Sequence[Read], *, in_slot: bool = False) -> list[Reply]:
        """Returns one reply per read; raises UserError for a mistake such as a missing model.

        `in_slot` is set in threads of `Slots`, which limits the time of the read itself.
        """
        start = monotonic()
        replies = self._replies(batch, in_slot)
        if self.readers.stages.budget.seconds is None:
            return replies
        # Stored with each output: a resumed shard then refuses the same reads for lack of seconds.
        # Each read of a batch is charged an equal share (decision 47).
        seconds = (monotonic() - start) / len(batch)
        return [replace(r, seconds=seconds) if isinstance(r, Output) else r for r in replies]

    def _replies(self, batch: Sequence[Read], in_slot: bool) -> list[Reply]:
        # Whole batches: an answer cached by prompt would leave a smaller batch for the others, and
        # other numbers than a run without the cache (decision 10).
        key = self._cache_key(batch)
        self.cured = {}
        if replies := self._cached(key, batch):
            return replies
        # Before the clock starts, so that tokens per second do not depend on the time to load.
        self.load()
        started, before = monotonic(), self._packed()
        timeout = None if in_slot else self.readers.limits.example_timeout
        results = isolated(partial(call_reader, self.reader), batch, "reader", timeout)
        self.cured = {number: note for number, (_, note) in enumerate(results) if note}
        replies = [_reply_of(result) for result, _ in results]
        packed = self._packed() - before
        self._count(replies, monotonic() - started, packed)
        # Errors are often temporary, and a smaller batch can change the last digits (decision 10).
        is_whole = not self.cured and not packed["halvings"]
        if key and self.readers.cache and is_whole and all(isinstance(r, Output) for r in replies):
            rows: Index = {"rows": [*map(output_row, batch, replies)]}
            self.readers.cache.put("outputs", key, rows)
        return replies

    def _cache_key(self, batch: Sequence[Read]) -> Mapping[str, JSON] | None:
        """Returns the inputs that determine the outputs of a batch; None if they are unknown."""
        # A reader without a fingerprint may have changed in ways that no recipe shows.
        identity = fingerprint(self.reader) if self.readers.cache else None
        if not identity:
            return None
        # Another micro-batch size changes a model's last digits, and thereby its texts.
        batching = batching_of(self.reader)
        sizes = batching.sizes() if batching else {}
        reader: dict[str, JSON] = {**identity, **({"sizes": {**sizes}} if sizes else {})}
        return {"reader": reader, "reads": list(map(digest_of, batch))}

    def _cached(self, key: Mapping[str, JSON] | None, reads: Sequence[Read]) -> list[Reply]:
        if not (key and self.readers.cache and (entry := self.readers.cache.get("outputs", key))):
            return []
        rows: Any = entry.get("rows")
        if rows is None:  # of version 0.2, which stored columns
            return []
        self.statistics.cached += len(reads)
        return [reply_of(row, read) for row, read in zip(rows, reads, strict=True)]

    def _packed(self) -> Counter[str]:
        batching = batching_of(self.reader)
        return Counter(batching.counts() if batching else {})

    def _count(self, replies: Sequence[Reply], seconds: float, packed: Counter[str]) -> None:
        outputs = [reply for reply in replies if isinstance(reply, Output)]
        more = ReadStatistics(
            seconds,
            len(replies),
            input_tokens=sum(output.input_tokens for output in outputs),
            output_tokens=sum(output.output_tokens for output in outputs),
            packed=packed,
        )
        with self._lock:
            self.statistics.add(more)


def _reply_of(result: Output | ExampleError) -> Reply:
    return ReadError(result.message, result.trace) if isinstance(result, ExampleError) else result


@dataclass
class BatchReaders:
    """Readers of a pipeline by role; a batch contains reads of one reader."""

    stages: Pipeline
    cache: CacheProtocol | None = None  # of outputs of complete batches; None disables caching
    limits: Limits = field(default_factory=Limits)  # of the run, for batches and calls of stages
    attempts: Attempts = field(default_factory=Attempts)  # log of started operations

    def __post_init__(self) -> None:
        self._by_stage: dict[int, BatchReader] = {}
        # One reader in several roles forms common batches and has one set of statistics.
        self._by_role = {
            role: self._by_stage.setdefault(id(reader), BatchReader(reader, self))
            for role, reader in self.stages.readers.items()
        }

    def of(self, role: str) -> BatchReader:
        """Returns the reader of a role; raises StageError if the pipeline has none."""
        return self._by_stage[id(self.stages.reader_of(role))]

    @property
    def answering(self) -> BatchReader:
        """Reader of the answers."""
        return self._by_role[ANSWER]

    def load(self) -> None:
        """Loads all models."""
        for reader in self._by_stage.values():
            reader.load()

    @property
    def slots(self) -> int:
        """Number of single reads that may run at once; 0 if any reader reads batches."""
        return min(reader.slots for reader in self._by_stage.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Micro-batch sizes that used readers determined; see `batch_sizes`."""
        used = {role for role, reader in self._by_role.items() if reader.is_used}
        return batch_sizes(self.stages, used)

    @property
    def statistics(self) -> dict[str, ReadStatistics]:
        """Statistics by role; a reader of several roles counts under its first role."""
        first: dict[int, str] = {}
        for role, reader in self._by_role.items():
            first.setdefault(id(reader), role)
        return {role: self._by_role[role].statistics for role in first.values()}


def batch_sizes(stages: Pipeline, roles: Collection[str]) -> dict[str, int]:
    """Returns the micro-batch sizes of readers, which may load their models to measure them."""
    return {
        name if role == ANSWER else f"{role}.{name}": size
        for role, reader in stages.readers.items()
        if role in roles and (batching := batching_of(reader))
        for name, size in batching.sizes().items()
    }


def restore_batch_sizes(stages: Pipeline, sizes: Mapping[str, int]) -> None:
    """Sets readers to the micro-batch sizes that an earlier process determined."""
    for role, reader in stages.readers.items():
        prefix = "" if role == ANSWER else f"{role}."
        by_name = {n.removeprefix(prefix): s for n, s in sizes.items() if n.startswith(prefix)}
        if by_name and (batching := batching_of(reader)):
            batching.settle({n: size for n, size in by_name.items() if "." not in n})


def digest_of(read: Read) -> str:
    """Returns a hash of all fields of a read that a reader sees, with its documents' text."""
    passages = [
        passage
        if isinstance(passage, str)
        else [_content_digest(passage.document), passage.start, passage.end]
        for passage in read.passages
    ]
    # A paragraph is in hundreds of pairs, whose texts are those of the passages.
    text = dumps([passages, _SEEN_FIELDS(read), pair_of(read)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_SEEN_FIELDS = attrgetter(*(n for n in Read.__slots__ if n not in ("passages", "pair", "role")))


def _content_digest(document: Document) -> str:
    def digest() -> str:
        text = dumps(content_of(document), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    return document.memo("content digest", digest)
