"""Selects hits for all questions on a document, which is chunked only once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from leporello.config import Pipeline
from leporello.core.calls.contracts import asks_question, load_models
from leporello.core.calls.derived import chunks_of
from leporello.core.calls.memory import memo_key
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.core.passages import identity
from leporello.core.protocols import Chunker
from leporello.core.records import Chunk, Example, Hit
from leporello.engine.enriching import EnricherRunner
from leporello.engine.failures import ExampleError, isolated, stage_errors
from leporello.engine.reading import BatchReaders


@dataclass(frozen=True, slots=True)
class Selection:
    """Hits of an example."""

    hits: list[Hit]  # hits, best first
    unchunked: int  # number of the document's characters outside chunks, without white space
    notes: tuple[str, ...] = ()


def select_document(
    stages: Pipeline, examples: Sequence[Example], timeout: float | None = None
) -> list[Selection | ExampleError]:
    """Returns the selection or error of each example on a document; the timeout is per example."""
    if timeout is not None:  # loading and hashing happen once, outside the examples' time limit
        for stage in (stages.chunker, stages.retriever):
            load_models(stage)
            if cache := examples[0].document.cache:
                cache.fingerprint(stage)
    valid = [example for example in examples if not example.fault]
    results = iter(isolated(partial(select, stages), valid, "retriever", timeout) if valid else ())
    return [ExampleError("task", e.fault) if e.fault else _noted(*next(results)) for e in examples]


def _noted(selection: Selection | ExampleError, note: str) -> Selection | ExampleError:
    if not note or isinstance(selection, ExampleError):
        return selection
    return replace(selection, notes=(*selection.notes, note))


def select(stages: Pipeline, examples: Sequence[Example]) -> list[Selection]:
    """Returns the selection for each example on one document; raises ExampleError for a stage."""
    with stage_errors("retriever"):
        if asks_question(stages.chunker):
            # This chunker's chunks depend on the question, so examples cannot share them.
            return [s for example in examples for s in _together(stages, [example])]
        return _together(stages, examples)


def _together(stages: Pipeline, examples: Sequence[Example]) -> list[Selection]:
    with collect_notes() as notes:
        chunks = document_chunks(stages.chunker, examples[0])
        passages = (
            chunks
            if stages.enricher is None
            else EnricherRunner(BatchReaders(stages)).passages_of(chunks)
        )
        lists = retrieve(stages.retriever, examples, passages)
    document, chunker = examples[0].document, stages.chunker
    question = examples[0].question if asks_question(chunker) else None
    key = ("unchunked", memo_key(chunker), question)  # the key of its chunks
    unchunked: int = document.memo(key, partial(_unchunked, document.text, chunks))
    if stages.enricher is not None:  # several passages may have the same text
        lists = [
            [*{identity(hit.chunk): hit for hit in hits[::-1]}.values()][::-1] for hits in lists
        ]
    return [Selection(hits, unchunked, tuple(notes)) for hits in lists]


def _unchunked(text: str, chunks: Sequence[Chunk]) -> int:
    # Without spans, whose checks would take three times as long for each short document.
    between, reached = [], 0
    for start, end in sorted((chunk.start, chunk.end) for chunk in chunks):
        if start > reached:
            between.append(text[reached:start])
        reached = max(reached, end)
    between.append(text[reached:])
    return len("".join("".join(between).split()))


def document_chunks(chunker: Chunker, example: Example) -> tuple[Chunk, ...]:
    """Returns the chunks of an example's document, which examples share where possible."""
    document = example.document
    question = example.question if asks_question(chunker) else None
    with stage_errors("chunker"):
        return chunks_of(
            document, chunker, question, partial(divide, chunker, question=question or "")
        )


def by_document(examples: Iterable[Example]) -> Iterator[tuple[int, tuple[Example, ...]]]:
    """Yields the number of the first example and all examples for each document."""
    first = 0
    # By object: comparing ids or texts of megabytes would take longer than the grouping.
    for _, group in groupby(examples, key=lambda example: id(example.document)):
        on_document = tuple(group)
        yield first, on_document
        first += len(on_document)
