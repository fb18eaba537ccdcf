"""Divide and select: the hits of all questions on one document, each chunked only once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from leporello.config import Pipeline
from leporello.core.calls import derived, segments
from leporello.core.calls.contracts import asks_question, load_models
from leporello.core.calls.memory import memo_key
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.core.passages import identity
from leporello.core.protocols import Chunker
from leporello.core.records import Chunk, Example, Hit
from leporello.engine.enriching import Enriching
from leporello.engine.failures import ExampleError, note_of_cure, stage_errors, time_limit


@dataclass(frozen=True, slots=True)
class Selection:
    """What was selected for an example.

    Attributes:
        hits: Hits, best first.
        unchunked: Number of the document's characters that are in no chunk, white space apart.
        notes: Notes of chunker and retriever.
    """

    hits: list[Hit]
    unchunked: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimedSelections:
    """What one pipeline selects for the examples on a document.

    Attributes:
        selections: Selections, one an example, in task order; an error where it failed.
        seconds: Seconds that dividing and selecting took; what pipelines share, the first of them
            pays.
    """

    selections: tuple[Selection | ExampleError, ...]
    seconds: float


def select_document(
    stages: Pipeline, examples: Sequence[Example], timeout: float | None
) -> TimedSelections:
    """Divides and selects for one pipeline; examples whose data is at fault are left out.

    Args:
        stages: Stages, of which chunker and retriever are used.
        examples: Examples, all on one document.
        timeout: Seconds that a call may take for each example in it; None is no limit.

    Raises:
        UserError: A mistake of the user's.
    """
    started = time.monotonic()
    sound = [example for example in examples if not example.fault]
    selections = iter(select_apart(stages, sound, timeout) if sound else ())
    selected = tuple(
        ExampleError("task", e.fault) if e.fault else next(selections) for e in examples
    )
    return TimedSelections(selected, time.monotonic() - started)


def select(stages: Pipeline, examples: Sequence[Example]) -> list[Selection]:
    """Returns what is selected for each example; all are on one document.

    Raises:
        ExampleError: The chunker or the retriever failed.
        UserError: A mistake of the user's.
    """
    with stage_errors("retriever"):
        if asks_question(stages.chunker):
            # Chunks depend on the question here, so that no two examples share them.
            return [s for example in examples for s in _together(stages, [example])]
        return _together(stages, examples)


def select_apart(
    stages: Pipeline, examples: Sequence[Example], timeout: float | None = None
) -> list[Selection | ExampleError]:
    """Returns what is selected for each example, or why nothing is.

    After a failure each question is asked on its own, so that only the guilty one fails.

    Args:
        stages: Stages, of which the chunker and the retriever are used.
        examples: Examples, all on one document.
        timeout: Seconds that a call may take for each example in it.
    """
    if timeout is not None:  # what takes its time once is no example's, and not interrupted
        for stage in (stages.chunker, stages.retriever):
            load_models(stage)
            if cache := examples[0].document.cache:
                cache.fingerprint(stage)
    limit = None if timeout is None else timeout * len(examples)
    try:
        with stage_errors("retriever"), time_limit(limit):
            return [*select(stages, examples)]
    except ExampleError as error:
        if len(examples) == 1:
            return [error]
        told = error
    apart = [s for example in examples for s in select_apart(stages, [example], timeout)]
    selections = [one for one in apart if isinstance(one, Selection)]
    if len(selections) < len(apart):
        return apart
    note = note_of_cure(told.stage, told.__cause__ or told, told.message)  # nobody is guilty
    return [replace(one, notes=(*one.notes, note)) for one in selections]


def _together(stages: Pipeline, examples: Sequence[Example]) -> list[Selection]:
    with collect_notes() as notes:
        chunks = divided(stages.chunker, examples[0])
        passages = chunks if stages.enricher is None else Enriching(stages).of(chunks)
        lists = retrieve(stages.retriever, examples, passages)
    document, chunker = examples[0].document, stages.chunker
    asked = examples[0].question if asks_question(chunker) else None
    key = ("unchunked", memo_key(chunker), asked)  # as its chunks are known by
    unchunked: int = document.memo(key, partial(_unchunked, document.text, chunks))
    if stages.enricher is not None:  # several passages may give the reader the same
        lists = [
            [*{identity(hit.chunk): hit for hit in hits[::-1]}.values()][::-1] for hits in lists
        ]
    return [Selection(hits, unchunked, tuple(notes)) for hits in lists]


def _unchunked(text: str, chunks: Sequence[Chunk]) -> int:
    between, reached = [], 0
    for start, end in sorted((chunk.start, chunk.end) for chunk in chunks):
        if start > reached:
            between.append(text[reached:start])
        reached = max(reached, end)
    between.append(text[reached:])
    return len("".join("".join(between).split()))


def divided(chunker: Chunker, example: Example) -> tuple[Chunk, ...]:
    """Returns the chunks of an example's document, made once for all that need the same.

    Raises:
        ExampleError: The chunker failed.
        UserError: A mistake of the user's.
    """
    document = example.document
    question = example.question if asks_question(chunker) else None
    with stage_errors("chunker"):
        make = partial(divide, chunker, question=question or "")
        if document.members:
            return segments.chunks(document, chunker, question, make)
        return derived.chunks(document, chunker, question, partial(make, document))


def by_document(examples: Iterable[Example]) -> Iterator[tuple[int, tuple[Example, ...]]]:
    """Yields the examples on each document, behind the number of the first of them."""
    first = 0
    for _, together in groupby(examples, key=lambda example: id(example.document)):
        group = tuple(together)
        yield first, group
        first += len(group)
