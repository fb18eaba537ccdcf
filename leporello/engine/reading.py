"""The one reader of an engine: reads windows of what many examples ask for."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello.cache.fingerprint import fingerprint
from leporello.config import Pipeline
from leporello.core.calls.answers import rounded
from leporello.core.calls.contracts import WrongCountError, batching_of, load_models
from leporello.core.calls.derived import content_of
from leporello.core.calls.stage_calls import read as call_reader
from leporello.core.errors import ReadError, UserError
from leporello.core.protocols import ANSWER
from leporello.core.records import JSON, CacheProtocol, Output, Read, Reply
from leporello.engine.failures import Attempts, is_passed_on, note_of_cure, read_error, time_limit
from leporello.engine.results.serialization import output_from_row, output_row

_COUNTED = ("seconds", "reads", "cached", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """What came of a reader's micro-batches.

    Attributes:
        batches: Number of batches read.
        prompt_tokens: Tokens in them; equal prompts stand there once.
        padded_tokens: Tokens with padding, as if each prompt were as long as its batch's longest.
        halvings: Number of times that memory did not suffice, and they were made smaller.
    """

    batches: int = 0
    prompt_tokens: int = 0
    padded_tokens: int = 0
    halvings: int = 0

    @property
    def padding(self) -> float:
        """Share of padding."""
        return 1 - self.prompt_tokens / self.padded_tokens if self.padded_tokens else 0.0

    def since(self, before: BatchStatistics) -> BatchStatistics:
        """Returns what has been added."""
        added = {n: getattr(self, n) - getattr(before, n) for n in self.__slots__}
        return BatchStatistics(**added)

    def plus(self, more: BatchStatistics) -> BatchStatistics:
        """Returns both together."""
        summed = {n: getattr(self, n) + getattr(more, n) for n in self.__slots__}
        return BatchStatistics(**summed)


@dataclass
class ReadStatistics:
    """What reading came to.

    Attributes:
        seconds: Seconds spent in the reader, its model loaded.
        reads: Number of reads; those whose outputs were cached are not counted.
        cached: Number of reads whose outputs were cached by an earlier run.
        input_tokens: Tokens of what was read.
        output_tokens: Tokens of what was written.
        packed: Statistics of its micro-batches, if it packs any.
    """

    seconds: float = 0.0
    reads: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    packed: BatchStatistics = BatchStatistics()

    def add(self, more: ReadStatistics) -> None:
        """Adds what more reading came to."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.packed = self.packed.plus(more.packed)

    def row(self) -> dict[str, JSON]:
        """Returns all of it, and rates, for timings.json."""
        row = {name: getattr(self, name) for name in _COUNTED}
        for name in ("input_tokens", "output_tokens"):
            row[f"{name}_per_second"] = round(row[name] / self.seconds, 1) if self.seconds else 0
        if self.packed.batches:
            packed = self.packed
            row |= {"batches": packed.batches, "padding": round(packed.padding, 4)}
            row["halvings"] = packed.halvings
        return row


@dataclass
class WindowReader:
    """A reader for windows: a faulty read fails alone, and what is cached is not read.

    Attributes:
        reader: Stage that reads.
        cache: Cache of outputs, by whole windows; None caches nothing.
        timeout: Seconds that a call may take for each read in it; None is no limit.
        attempts: Record of what is begun.
        statistics: Statistics of the reads so far.
        cured: Notes on reads of the last window that failed together and did not alone, by place.
    """

    reader: Any
    cache: CacheProtocol | None = None
    timeout: float | None = None
    attempts: Attempts = field(default_factory=Attempts)
    statistics: ReadStatistics = field(default_factory=ReadStatistics)
    cured: dict[int, str] = field(default_factory=dict)
    _halved: bool = False  # what was read in halves is not what the window says
    _loaded: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def window_size(self) -> int:
        """Inputs that the reader's class wants in one window, 0 if it does not say."""
        return int(getattr(type(self.reader), "window_size", 0))

    @property
    def schedules_itself(self) -> bool:
        """Whether the reader wants all waiting reads of a shard in one call."""
        return bool(getattr(self.reader, "schedules_itself", False))

    def window(self, most: int) -> int:
        """Returns how many reads make a window, where the run's own limit is `most`.

        One that schedules itself is given all that waits.
        """
        return sys.maxsize if self.schedules_itself else max(most, self.window_size)

    @property
    def slots(self) -> int:
        """Number of single reads that may be under way at once; 0 for a reader of windows."""
        independent = not getattr(self.reader, "depends_on_batch", True)
        return int(getattr(self.reader, "slots", 0)) if independent else 0

    @property
    def sizes(self) -> Mapping[str, int]:
        """Sizes that the reader found itself; it does so now, for which it may load its model."""
        batching = batching_of(self.reader)
        return dict(batching.sizes()) if batching else {}

    def load(self) -> None:
        """Loads the reader's models, which takes its time and must not be interrupted."""
        if not self._loaded:
            with self.attempts.loading():
                load_models(self.reader)
            self._loaded = True

    def read(self, window: Sequence[Read]) -> list[Reply]:
        """Returns one reply a read.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
        """
        key = self._cache_key(window)
        self.cured = {}
        if key and self.cache and (entry := self.cache.get("outputs", key)):
            self.statistics.cached += len(window)
            rows: Any = entry["outputs"]
            return [output_from_row(row) for row in rows]
        self.load()
        started, before, self._halved = time.monotonic(), self._packed(), False
        replies = self._read(window)
        packed = self._packed().since(before)
        self._count(replies, time.monotonic() - started, packed)
        # Answers of smaller batches are not what this window says (decision 10).
        if key and self.cache and not self._halved and not packed.halvings:
            self.cache.put("outputs", key, {"outputs": list(map(output_row, replies))})
        return replies

    def read_one(self, read: Read) -> Reply:
        """Returns the reply to one read; may be called from several threads at once.

        Raises:
            UserError: As `read`.
        """
        key = self._cache_key([read])
        if key and self.cache and (entry := self.cache.get("outputs", key)):
            self.statistics.cached += 1
            rows: Any = entry["outputs"]
            return output_from_row(rows[0])
        started = time.monotonic()
        try:
            reply: Reply = _rounded(call_reader(self.reader, [read])[0])
        except UserError:
            raise
        except BaseException as error:  # as `_read`
            reply = read_error(error)
        with self._lock:
            self._count([reply], time.monotonic() - started, BatchStatistics())
        if key and self.cache and isinstance(reply, Output):
            self.cache.put("outputs", key, {"outputs": [output_row(reply)]})
        return reply

    def _cache_key(self, window: Sequence[Read]) -> Mapping[str, JSON] | None:
        """Returns what the outputs of a window depend on; None if that cannot be told."""
        identity = fingerprint(self.reader) if self.cache else None
        if not identity:
            return None
        # In micro-batches of another size a model's last digits differ, and with them texts.
        sizes = self.sizes
        reader: dict[str, JSON] = {**identity, **({"sizes": {**sizes}} if sizes else {})}
        return {"reader": reader, "reads": list(map(digest_of, window))}

    def _packed(self) -> BatchStatistics:
        """Returns what came of all of the reader's micro-batches so far."""
        batching = batching_of(self.reader)
        return BatchStatistics(**batching.counts()) if batching else BatchStatistics()

    def _read(self, reads: Sequence[Read], first: int = 0) -> list[Reply]:
        """Reads a window, or what begins there; what fails is halved until the guilty is alone."""
        limit = None if self.timeout is None else self.timeout * len(reads)
        try:
            with time_limit(limit):
                outputs = call_reader(self.reader, reads)
        except WrongCountError as error:  # a fault of the class, which no smaller window cures
            return [read_error(error)] * len(reads)
        except BaseException as error:  # a plug-in that leaves the process fails too
            if is_passed_on(error):
                raise
            self._halved, told = True, read_error(error)
            if len(reads) == 1:
                return [told]
            half = len(reads) // 2
            replies = [
                *self._read(reads[:half], first), *self._read(reads[half:], first + half)
            ]  # fmt: skip
            if not any(isinstance(reply, ReadError) for reply in replies):  # none of them is guilty
                note = note_of_cure("reader", error, str(told))
                self.cured |= dict.fromkeys(range(first, first + len(reads)), note)
            return replies
        return [_rounded(output) for output in outputs]

    def _count(self, replies: Sequence[Reply], seconds: float, packed: BatchStatistics) -> None:
        outputs = [reply for reply in replies if isinstance(reply, Output)]
        self.statistics.add(
            ReadStatistics(
                seconds,
                len(replies),
                input_tokens=sum(output.input_tokens for output in outputs),
                output_tokens=sum(output.output_tokens for output in outputs),
                packed=packed,
            )
        )


@dataclass
class WindowReaders:
    """A pipeline's readers by role, each with windows of its own.

    Attributes:
        stages: Stages of the pipeline.
        cache: Cache of outputs; None caches nothing.
        timeout: Seconds that a call may take for each read in it; None is no limit.
        attempts: Record of what is begun.
    """

    stages: Pipeline
    cache: CacheProtocol | None = None
    timeout: float | None = None
    attempts: Attempts = field(default_factory=Attempts)

    def __post_init__(self) -> None:
        self._by_stage: dict[int, WindowReader] = {}
        self._by_role = {role: self._window_reader(r) for role, r in self.stages.readers.items()}

    def _window_reader(self, stage: object) -> WindowReader:
        made = WindowReader(stage, self.cache, self.timeout, self.attempts)
        return self._by_stage.setdefault(id(stage), made)

    def of(self, role: str) -> WindowReader:
        """Returns the reader that has a role.

        Raises:
            StageError: None has.
        """
        return self._by_stage[id(self.stages.reader_of(role))]

    @property
    def answering(self) -> WindowReader:
        """The reader of answers."""
        return self._by_role[ANSWER]

    def load(self) -> None:
        """Loads all models."""
        for reader in self._by_stage.values():
            reader.load()

    @property
    def slots(self) -> int:
        """Number of single reads that may be under way at once; 0 if any reader has windows."""
        return min(reader.slots for reader in self._by_stage.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that readers found themselves, those of roles as `select.batch_tokens`."""
        return {
            name if role == ANSWER else f"{role}.{name}": size
            for role, reader in self._by_role.items()
            if reader.statistics.reads or reader.statistics.cached
            for name, size in reader.sizes.items()
        }

    @property
    def statistics(self) -> dict[str, ReadStatistics]:
        """What reading came to, by role; readers of several roles count for the first of them."""
        first: dict[int, str] = {}
        for role, reader in self._by_role.items():
            first.setdefault(id(reader), role)
        return {role: self._by_role[role].statistics for role in first.values()}


def all_sizes(stages: Pipeline) -> dict[str, int]:
    """Returns the sizes that a pipeline's readers found themselves, as `WindowReaders.sizes`."""
    return {
        name if role == ANSWER else f"{role}.{name}": size
        for role, reader in stages.readers.items()
        for name, size in WindowReader(reader).sizes.items()
    }


def restore_batch_sizes(stages: Pipeline, sizes: Mapping[str, int]) -> None:
    """Has readers use the sizes that an earlier process found."""
    for role, reader in stages.readers.items():
        before = "" if role == ANSWER else f"{role}."
        own = {n.removeprefix(before): size for n, size in sizes.items() if n.startswith(before)}
        if own and (batching := batching_of(reader)):
            batching.settle({n: size for n, size in own.items() if "." not in n})


def digest_of(read: Read) -> str:
    """Returns a hash of everything that a reader can see of a read, its documents included."""
    passages: list[JSON] = [
        passage
        if isinstance(passage, str)
        else [content_of(passage.document), passage.start, passage.end]
        for passage in read.passages
    ]
    fields = {
        n: getattr(read, n) for n in Read.__slots__ if n not in ("passages", "role", "schema")
    }
    fields |= {"schema": read.schema} if read.schema else {}
    text = json.dumps([passages, fields], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _rounded(output: Output) -> Output:
    """Rounds scores before anything compares them; what is not a number is no score."""
    score = output.score
    if score is not None and not math.isfinite(score):
        score = None
    # Digits that differ from machine to machine would decide ties.
    return dataclasses.replace(
        output,
        score=None if score is None else rounded(score),
        scores=tuple(rounded(value) for value in output.scores),
        probability=None if output.probability is None else rounded(output.probability),
    )
