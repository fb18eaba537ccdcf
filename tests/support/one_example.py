"""Runs one example without an engine, and returns the reads of each round."""

from collections.abc import Callable, Sequence
from typing import Any

from leporello.config import Pipeline
from leporello.core.errors import ReadError
from leporello.core.records import Example, Fit, Generates, Hit, Read, Search
from leporello.engine.active_example import ActiveExample, Scoring
from leporello.engine.reading import BatchReaders
from leporello.engine.selection import select


def run_example(stages: Pipeline, example: Example) -> tuple[ActiveExample, list[list[Read]]]:
    """Runs an example read by read; returns it and the reads of each round."""
    [selection] = select(stages, [example])
    active = ActiveExample(Scoring(BatchReaders(stages)), 0, example, selection)
    rounds: list[list[Read]] = []
    while (finished := active.advance()) is None:
        rounds.append([*active.reads])
        for index, read in enumerate(active.reads):
            active.reply(index, stages.reader_of(read.role).read([read])[0])
    assert not finished.failed, finished.failure
    return active, rounds


def drive(
    combiner: Any,
    answer: Callable[[Read], Any],
    example: Example,
    hits: Sequence[Hit],
    search: Callable[[Search], Any] = lambda _: (),
    *,
    fits: int = 9,
    writes: bool = True,
) -> tuple[Any, list[list[Read]]]:
    """Runs a combiner by hand; returns its value and the reads of each round.

    A `ReadError` that `answer` raises for a read becomes the reply; `fits` passages fit an input
    window, and `writes` is whether the reader generates text.
    """
    generator = combiner.combine(example, hits)
    rounds: list[list[Read]] = []
    replies: list[Any] | None = None
    while True:
        try:
            requests: Sequence[Any] = generator.send(replies)
        except StopIteration as stop:
            return stop.value, rounds
        if reads := [request for request in requests if isinstance(request, Read)]:
            rounds.append(reads)
        replies = [_reply(r, answer, search, fits, writes) for r in requests]


def _reply(
    request: Any,
    answer: Callable[[Read], Any],
    search: Callable[[Search], Any],
    fits: int,
    writes: bool,
) -> Any:
    if isinstance(request, Fit):
        return min(fits, len(request.read.passages))
    if isinstance(request, Generates):
        return writes
    try:
        return search(request) if isinstance(request, Search) else answer(request)
    except ReadError as error:
        return error


def texts_of(read: Read) -> list[str]:
    """Returns the texts of a read's passages."""
    return [passage if isinstance(passage, str) else passage.text for passage in read.passages]
