"""Runs the enricher of a pipeline on a document, once for all questions, with batched reads."""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leporello.config import Pipeline
from leporello.core.annotations import annotations_of, roles_of
from leporello.core.calls import derived
from leporello.core.calls.contracts import StageError, in_role, load_models
from leporello.core.calls.stage_calls import stage_call
from leporello.core.notes import collect_notes, note
from leporello.core.passages import fault_of, flat_read, from_table, to_table
from leporello.core.protocols import ANSWER
from leporello.core.records import Chunk, Document, Read, Reply, Request, Search
from leporello.engine.failures import ExampleError, stage_errors, time_limit
from leporello.engine.progress import Listener
from leporello.engine.reading import BatchReaders
from leporello.engine.requests import checked, reader_property, role_of, rounds_of
from leporello.engine.results.serialization import reply_of
from leporello.engine.store import MemoryStore

_MOST_PASSAGES = 1_000  # per document, plus those per chunk
_MOST_PER_CHUNK = 10


def passage_stages(stages: Pipeline) -> list[object]:
    """Returns the stages that determine passages: the enricher, and the readers that it uses."""
    kind = type(stages.enricher)
    # An enricher without reads depends on no reader, so another model reuses its passages.
    if not inspect.isgeneratorfunction(kind.enrich):
        return [stages.enricher]
    readers = {id(r): r for r in map(stages.reader_of, _roles(stages))}
    return [stages.enricher, *readers.values()]


def _roles(stages: Pipeline) -> list[str]:
    """Returns the roles of readers that an enricher may use: those that its parameters name."""
    kind = type(stages.enricher)
    values = {name: getattr(stages.enricher, name, None) for name in annotations_of(kind)}
    return [*roles_of(kind, values)] or [ANSWER]


@dataclass
class EnricherRunner:
    """Runs the enricher of one pipeline; cached and stored passages are not computed again."""

    readers: BatchReaders  # readers of the pipeline by role
    listener: Listener = field(default_factory=Listener)

    def __post_init__(self) -> None:
        self.stages = self.readers.stages

    def prepare(self, chunks: Sequence[Chunk], number: int, store: MemoryStore) -> None:
        """Computes or restores the passages of a document; it and the store keep them."""
        document = chunks[0].document
        with collect_notes() as notes:
            # From the store, even without a cache: a second enriching could differ.
            if row := store.passages(number, document.sha256):
                self._derived(chunks, partial(_restored, document, row))
                return
            try:
                passages = self.passages_of(chunks, number, store)
            except ExampleError:
                store.forget(number)  # replaying the outputs so far would fail again
                raise
        # Stored with the run: enriching may cost more than all questions together.
        store.add_passages(number, document.sha256, {**to_table(passages), "notes": [*notes]})

    def passages_of(
        self, chunks: Sequence[Chunk], number: int = 0, store: MemoryStore | None = None
    ) -> Sequence[Chunk]:
        """Returns the passages of the document with this number; a store keeps the outputs."""
        if self.stages.enricher is None or not chunks:
            return chunks
        return self._derived(chunks, partial(self._enrich, chunks, number, store))

    def _derived(
        self, chunks: Sequence[Chunk], make: Callable[[], Sequence[Chunk]]
    ) -> Sequence[Chunk]:
        # Passages need no question, so they are made once per document, and cached by enricher,
        # readers and chunks (decision 46).
        return derived.passages_of(chunks, passage_stages(self.stages), make)

    def _enrich(
        self, chunks: Sequence[Chunk], number: int, store: MemoryStore | None
    ) -> Sequence[Chunk]:
        enricher, document = self.stages.enricher, chunks[0].document
        name = f"{type(enricher).__name__}.enrich"
        # Outside the time limit, which is for an example and not for loading a model.
        with stage_errors("enricher"):
            load_models(enricher)
        calling = partial(self._calling, name, document)
        with calling():
            result: Any = enricher.enrich(document, chunks)
        if not inspect.isgenerator(result):
            return _passages(name, result, chunks)
        steps: Any = result
        generator = in_role(getattr(enricher, "role", ""), steps)
        check = partial(self._checked, name, document)
        answer = partial(reader_property, self.stages)
        rounds = rounds_of(generator, name, check, answer, calling)
        store = store or MemoryStore()
        # `~number` is negative, so it never equals the number of an example.
        stored, place = store.outputs(~number), 0
        replies: list[Reply] | None = None
        while True:
            try:
                reads = [*map(flat_read, rounds.send(replies))]
            except StopIteration as stop:
                return _passages(name, stop.value, chunks)
            replies = []
            for batch in self._batches(reads):
                if place in stored:  # a store contains complete batches
                    rows = (stored[place + index][0] for index in range(len(batch)))
                    replies += map(reply_of, rows, batch)
                else:
                    replies += self._read(batch, number, place, store)
                place += len(batch)

    @contextmanager
    def _calling(self, name: str, document: Document) -> Iterator[None]:
        # Not around reads: an interrupt between them would fail the questions on the document.
        limit = time_limit(self.readers.limits.example_timeout)
        with stage_errors("enricher"), stage_call(name, document), limit:
            yield

    def _checked(self, name: str, document: Document, requests: object) -> Sequence[Request]:
        valid = checked(requests, document, self.stages)
        # The index of the retriever is made from these passages, so it cannot exist yet.
        if any(isinstance(request, Search) for request in valid):
            raise StageError(f"{name} yielded a Search; passages are only searched afterwards")
        # The cache key of the passages contains these readers only.
        allowed = [self.stages.reader_of(role) for role in _roles(self.stages)]
        for role in map(role_of, valid):
            if not any(self.stages.reader_of(role) is reader for reader in allowed):
                raise StageError(f"{name} uses the role {role!r}, which no parameter names")
        return valid

    def _batches(self, reads: Sequence[Read]) -> Iterator[Sequence[Read]]:
        # A batch has reads of one document. Short documents fill it badly, but reads of many
        # documents would keep the chunks of all of them in memory (decision 46).
        for _, group in itertools.groupby(reads, lambda read: id(self.readers.of(read.role))):
            of_reader = [*group]
            size = self.readers.of(of_reader[0].role).batch_size
            for first in range(0, len(of_reader), size):
                yield of_reader[first : first + size]

    def _read(
        self, batch: Sequence[Read], number: int, place: int, store: MemoryStore
    ) -> Sequence[Reply]:
        """Reads a batch whose first read has this index among those of the document."""
        reader = self.readers.of(batch[0].role)
        self.listener.before_step()
        self.readers.attempts.start("enricher", number)
        self.listener.reading(len(batch))
        replies = reader.read(batch)
        self.listener.has_read(reader.statistics)
        # Stored before the enricher gets them: a killed run then makes the same passages.
        rows = zip(itertools.count(place), batch, replies, strict=False)
        store.add_batch([(~number, *row, "") for row in rows])
        return replies


def _restored(document: Document, row: Mapping[str, Any]) -> Sequence[Chunk]:
    # Here, so that the document keeps the notes with the passages, as after an enricher's run.
    for text in row["notes"]:
        note(text)
    return from_table(document, row)


def _passages(name: str, returned: object, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """Returns the passages and chunks that an enricher returned, after checking them."""
    document: Document = chunks[0].document
    with stage_errors("enricher"):
        if not isinstance(returned, list | tuple) or not returned:
            raise StageError(
                f"{name} returned {returned!r:.80}; it must return a list of chunks and passages"
            )
        if len(returned) > (most := _MOST_PASSAGES + _MOST_PER_CHUNK * len(chunks)):
            count = f"{most:,} passages for {len(chunks):,} chunks"
            raise StageError(f"{name} returned more than {count}")
        for passage in returned:
            if fault := fault_of(passage, document):
                raise StageError(f"{name} returned {fault}")
    return returned
