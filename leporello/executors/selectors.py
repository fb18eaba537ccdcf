"""Processes that chunk and retrieve ahead of a worker's reader."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from time import monotonic  # by name: a stage may replace functions of `time`
from typing import Self, TypeAlias

from leporello.core.records import Document, Example, Hit
from leporello.engine.failures import ExampleError, be_watched
from leporello.engine.selection import Selection, select_document
from leporello.executors.channel import dump, load
from leporello.executors.child_process import end_with_parent
from leporello.executors.interface import JobGroupSpec, Pipelines

_DOCUMENTS_AHEAD = 32  # fills about one batch if each document has one question
# Some eight novels: waiting documents are completely in memory.
_CHARACTERS_AHEAD = 8_000_000

# Selection for an example: hits as (start, end, score), unchunked characters, notes. Spans, not
# chunks, so that the document is not sent back.
_Spans: TypeAlias = tuple[list[tuple[int, int, float]], int, tuple[str, ...]]
# Selections of one pipeline for the examples on a document, and the seconds that they took.
Selected: TypeAlias = tuple[Sequence[Selection | ExampleError], float]


@dataclass(frozen=True, slots=True)
class OpenedDocument:
    """The examples on one document of a shard."""

    number: int  # number of the document in its shard
    first: int  # number of the first example in the shard
    examples: tuple[Example, ...]
    wanted: tuple[int, ...]  # indices of the pipelines that have not finished all of the examples

    @property
    def characters(self) -> int:
        """Length of the document."""
        return len(self.examples[0].document.text)


class Selectors:
    """Pool of processes. If one dies, its worker exits, so that the death is counted."""

    def __init__(self, spec: JobGroupSpec) -> None:
        """Prepares the pool; processes start with the first document."""
        # A fork of a process that runs a model can hang it (decision 11). `spawn` is safe here,
        # since the main module of a worker is not the user's script.
        self._pool = ProcessPoolExecutor(
            spec.selectors, get_context("spawn"), initializer=_initialize, initargs=(dump(spec),)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def select(
        self, documents: Iterable[OpenedDocument]
    ) -> Iterator[tuple[OpenedDocument, dict[int, Selected]]]:
        """Yields the documents in their order, with the selections of every wanted pipeline."""
        ahead: deque[tuple[OpenedDocument, Future[bytes]]] = deque()
        for document in documents:
            # Processes rather than threads: chunkers in Python hold the interpreter, so in threads
            # they would keep the reader waiting (decision 11).
            work = dump((document.examples, document.wanted))
            ahead.append((document, self._pool.submit(_select, work)))
            while _is_enough(ahead):
                yield self._with_selections(*ahead.popleft())
        while ahead:
            yield self._with_selections(*ahead.popleft())

    def _with_selections(
        self, document: OpenedDocument, future: Future[bytes]
    ) -> tuple[OpenedDocument, dict[int, Selected]]:
        try:
            selected = load(future.result())
        except BrokenProcessPool:
            # The worker exits too, because only deaths of workers are counted against an operation.
            raise SystemExit("a process that selects for this worker has died") from None
        source = document.examples[0].document
        return document, {
            place: ([_selection(source, result) for result in spans], seconds)
            for place, (spans, seconds) in selected.items()
        }


def _is_enough(ahead: deque[tuple[OpenedDocument, Future[bytes]]]) -> bool:
    characters = sum(document.characters for document, _ in ahead)
    return len(ahead) > _DOCUMENTS_AHEAD or characters > _CHARACTERS_AHEAD


def _selection(document: Document, result: _Spans | ExampleError) -> Selection | ExampleError:
    if isinstance(result, ExampleError):
        return result
    spans, unchunked, notes = result
    hits = [Hit(document.chunk(start, end), score) for start, end, score in spans]
    return Selection(hits, unchunked, notes)


# -- in a process of the pool ------------------------------------------------------------------

_pipelines: Pipelines | None = None


def _initialize(spec: bytes) -> None:
    """Builds the pipelines, once per process."""
    global _pipelines  # noqa: PLW0603 -- an initializer can only set globals
    # Otherwise a killed worker would leave this process behind, with its indexes in memory.
    end_with_parent()
    _pipelines = Pipelines(load(spec))
    # Without it, a call that cannot be interrupted would hang.
    be_watched([0.0], _pipelines.spec.limits.example_timeout or 0.0)


def _select(work: bytes) -> bytes:
    assert _pipelines is not None
    examples: tuple[Example, ...]
    examples, places = load(work)
    if _pipelines.cache:
        examples[0].document.use_cache(_pipelines.cache)
    timeout = _pipelines.spec.limits.example_timeout
    selected = {}
    for place in places:
        started = monotonic()
        selections = select_document(_pipelines.stages[place], examples, timeout)
        selected[place] = [*map(_spans, selections)], monotonic() - started
    return dump(selected)


def _spans(selection: Selection | ExampleError) -> _Spans | ExampleError:
    if isinstance(selection, ExampleError):
        return selection
    hits = [(hit.chunk.start, hit.chunk.end, hit.score) for hit in selection.hits]
    return hits, selection.unchunked, selection.notes
