"""What an enricher makes of a document's chunks, once for all questions, by reads in windows."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leporello.config import Pipeline
from leporello.core.annotations import annotations_of, roles_of
from leporello.core.calls import derived
from leporello.core.calls.contracts import StageError, in_role, load_models
from leporello.core.calls.stage_calls import stage_call
from leporello.core.errors import ReadError
from leporello.core.passages import fault_of, flat_read
from leporello.core.protocols import ANSWER
from leporello.core.records import Chunk, Document, Fit, Generates, Read, Reply, Request, Search
from leporello.engine.failures import TRIES, Attempts, ExampleError, stage_errors, time_limit
from leporello.engine.limits import Limits
from leporello.engine.progress import Listener, Silent
from leporello.engine.reading import WindowReaders
from leporello.engine.requests import checked, role_of, told
from leporello.engine.results.serialization import reply_of
from leporello.engine.store import MemoryStore

_MOST_ROUNDS = 10_000  # a document: trees have a round a level
_MOST = (1_000, 10)  # passages of a document: so many, and so many a chunk


def makers(stages: Pipeline) -> list[object]:
    """Returns what passages depend on: the enricher, and the readers that it asks."""
    kind = type(stages.enricher)
    if not inspect.isgeneratorfunction(kind.enrich):
        return [stages.enricher]
    readers = {id(r): r for r in map(stages.reader_of, _roles(stages))}
    return [stages.enricher, *readers.values()]


def _roles(stages: Pipeline) -> list[str]:
    """Returns the roles that an enricher may ask: those that its parameters name."""
    kind = type(stages.enricher)
    given = {name: getattr(stages.enricher, name, None) for name in annotations_of(kind)}
    return [*roles_of(kind, given)] or [ANSWER]


@dataclass
class Enriching:
    """What makes passages for one pipeline; what is kept of a document is not made again.

    Attributes:
        stages: Stages of the pipeline.
        readers: Readers of windows by role; its own if None.
        limits: Limits of windows and time.
        listener: Listener that is told of each window.
        attempts: Record of what is begun.
    """

    stages: Pipeline
    readers: WindowReaders | None = None
    limits: Limits = field(default_factory=Limits)
    listener: Listener = field(default_factory=Silent)
    attempts: Attempts = field(default_factory=Attempts)

    def of(
        self,
        chunks: Sequence[Chunk],
        number: int = 0,
        store: MemoryStore | None = None,
        make: Callable[[], Sequence[Chunk]] | None = None,
    ) -> Sequence[Chunk]:
        """Returns the passages of a document.

        Args:
            chunks: Its chunks.
            number: Number of the document in the shard.
            store: Store of the outputs that the enricher receives; None stores nothing.
            make: Function that has them from elsewhere, called where the cache does not keep them.

        Raises:
            ExampleError: The enricher failed.
            UserError: A mistake of the user's.
        """
        if self.stages.enricher is None or not chunks:
            return chunks
        make = make or partial(self._made, chunks, number, store)
        with stage_errors("enricher"):
            return derived.passages(chunks, makers(self.stages), make)

    def _made(
        self, chunks: Sequence[Chunk], number: int, store: MemoryStore | None
    ) -> Sequence[Chunk]:
        """Returns what the enricher returns in the end."""
        enricher, document = self.stages.enricher, chunks[0].document
        name = f"{type(enricher).__name__}.enrich"
        load_models(enricher)
        with stage_call(name, document):
            result: Any = enricher.enrich(document, chunks)
        if not inspect.isgenerator(result):
            return _passages(name, result, chunks)
        made: Any = result
        generator = in_role(getattr(enricher, "role", ""), made)
        asked = _AskedReads(self, number, store)
        resume: Callable[[], Any] = partial(next, generator)
        for _ in range(_MOST_ROUNDS):
            try:
                with stage_call(name, document), time_limit(self.limits.example_timeout):
                    requests = checked(resume(), document, self.stages)
            except StopIteration as stop:
                return _passages(name, stop.value, chunks)
            if any(isinstance(request, Search) for request in requests):
                raise StageError(f"{name} searches: there is nothing to search before it has ended")
            _check_roles(self.stages, requests)
            reads = [flat_read(request) for request in requests if isinstance(request, Read)]
            replies = asked.replies(reads)
            failed = next((reply for reply in replies if isinstance(reply, ReadError)), None)
            if failed:
                resume = partial(generator.throw, failed)
                continue
            outputs = iter(replies)
            resume = partial(
                generator.send,
                [
                    told(self.stages, r) if isinstance(r, (Fit, Generates)) else next(outputs)
                    for r in requests
                ],
            )
        raise StageError(f"{name} asked {_MOST_ROUNDS:,} times, and has made nothing yet")


def _check_roles(stages: Pipeline, requests: Sequence[Request]) -> None:
    """Refuses what the key of kept passages would not tell."""
    allowed = [stages.reader_of(role) for role in _roles(stages)]
    for request in requests:
        if not any(stages.reader_of(role_of(request)) is reader for reader in allowed):
            name = type(stages.enricher).__name__
            raise StageError(f"{name} asks the role {role_of(request)!r}, which no parameter names")


class _AskedReads:
    """The reads of one document's enricher, those of earlier processes from the store."""

    def __init__(self, enriching: Enriching, number: int, store: MemoryStore | None) -> None:
        self.readers = enriching.readers or WindowReaders(enriching.stages)
        self._enriching, self._number = enriching, number
        self._store = store or MemoryStore()
        self._stored = self._store.outputs(~number)
        self._place = 0

    def replies(self, reads: Sequence[Read]) -> list[Reply]:
        """Returns what came of a round of reads; as one window is read, it is written down."""
        replies: list[Reply] = []
        for _, same in itertools.groupby(reads, lambda read: id(self.readers.of(read.role))):
            window = [*same]
            size = self.readers.of(window[0].role).window(self._enriching.limits.window)
            for first in range(0, len(window), size):
                replies += self._windowed(window[first : first + size])
        return replies

    def _windowed(self, window: Sequence[Read]) -> Sequence[Reply]:
        places = range(self._place, self._place + len(window))
        self._place, reader = places.stop, self.readers.of(window[0].role)
        if places.start in self._stored:  # whole batches
            return [
                reply_of(self._stored[n][0], read) for n, read in zip(places, window, strict=True)
            ]
        listener, attempts = self._enriching.listener, self._enriching.attempts
        listener.before_step()
        if attempts.begin("enrich", self._number) >= TRIES:
            raise ExampleError("enricher", attempts.cause)
        listener.reading(len(window))
        replies = reader.read(window)
        listener.has_read(reader.statistics)
        self._store.add_batch(
            [(~self._number, *each) for each in zip(places, window, replies, strict=True)]
        )
        return replies


def _passages(name: str, returned: object, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """Returns what an enricher returned, if it is passages and chunks of the document."""
    document: Document = chunks[0].document
    if not isinstance(returned, list | tuple) or not returned:
        raise StageError(
            f"{name} returned {returned!r:.80}; it must return a list of chunks and passages"
        )
    if len(returned) > (most := _MOST[0] + _MOST[1] * len(chunks)):
        raise StageError(f"{name} returned more than {most:,} passages of {len(chunks):,} chunks")
    for passage in returned:
        if fault := fault_of(passage, document):
            raise StageError(f"{name} returned {fault}")
    return returned
