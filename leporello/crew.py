"""The combiners in flight of one pipeline: examples go in, what they want read comes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from leporello.config import Built
from leporello.flight import ExampleError, Flight, ReadError, blame
from leporello.journal import Journal
from leporello.launch import launch
from leporello.metrics import Metric
from leporello.records import JSON, Example, Output, Prediction, Read
from leporello.rows import (
    call_rows,
    empty_prediction,
    failure_row,
    output_from_row,
    prediction_of,
    prediction_row,
)
from leporello.selection import Found
from leporello.supply import Normaliser
from leporello.time_limit import time_limit

__all__ = ["Crew", "Launch", "Move", "Moves", "Recorded", "Replies", "Round"]

R = TypeVar("R")
S = TypeVar("S")
Replies: TypeAlias = "Sequence[Output | ReadError]"
# An example's number, and a reply to each of its reads.
Round: TypeAlias = "tuple[int, Replies]"
# Of an unfinished example in the journal: (step, row of the output) of every read.
Recorded: TypeAlias = "Sequence[tuple[int, Mapping[str, JSON]]]"


@dataclass(frozen=True, slots=True)
class Move(Generic[R]):
    """How far an example has come: it wants something read, or is finished.

    Attributes:
        number: Of the example, in task order.
        reads: What it wants read; none once it is finished.
        replies: To the first of `reads`, as far as the journal holds them.
        step: The last of the journal's steps that completed a round of it; None if none did.
        line: The journal's, once it is finished.
        failed: Whether that tells of a failure.
    """

    number: int
    reads: Sequence[R] = ()
    replies: Replies = ()
    step: int | None = None
    line: bytes = b""
    failed: bool = False


# Starts the example of this number.
Launch: TypeAlias = "Callable[[int], Move[R]]"


class Moves(Protocol[R]):
    """Who holds the combiners in flight, in this process or elsewhere."""

    def deliver(self, rounds: Sequence[Round]) -> Iterable[Move[R]]:
        """Yields the next move of each example, in their order.

        Raises:
            UserError: A mistake of the user's.
        """
        ...


@dataclass
class Crew:
    """Holds the combiners in flight in this process.

    Attributes:
        stages: The pipeline's; chunker and retriever are asked only for what combiners search.
        metrics: Whose statistics are kept with each example.
        normalise: The task's.
        timeout: Seconds that a call of a combiner may take; None is no limit.
    """

    stages: Built
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    normalise: Normaliser | None = None
    timeout: float | None = None
    _flights: dict[int, Flight] = field(default_factory=dict)

    def ready(
        self,
        first: int,
        examples: Sequence[Example],
        found: Sequence[Found | ExampleError],
        journal: Journal,
    ) -> Launch[Read]:
        """Returns what starts each of the examples on a document.

        Args:
            first: Number of the first, in task order.
            examples: In task order.
            found: What was selected for each, or why nothing was.
            journal: What earlier processes left.
        """

        def start(number: int) -> Move[Read]:
            place = number - first
            return self.launch(number, examples[place], found[place], journal.recorded(number))

        return start

    def launch(
        self, number: int, example: Example, found: Found | ExampleError, recorded: Recorded = ()
    ) -> Move[Read]:
        """Starts an example, and goes as far as the journal's recorded outputs reach.

        Raises:
            UserError: A mistake of the user's.
        """
        if isinstance(found, ExampleError):
            return self._failed(number, example, found)
        flight = launch(self.stages, number, example, found)
        self._flights[number] = flight
        move, last = self._moved(flight, flight.start), None
        for step, row in recorded:
            flight.outputs.append(output_from_row(row))
            if len(flight.outputs) == len(flight.reads):
                move, last = self._moved(flight, flight.deliver), step
        return dataclasses.replace(move, replies=tuple(flight.outputs), step=last)

    def deliver(self, rounds: Sequence[Round]) -> Iterator[Move[Read]]:
        """Yields the next move of each example, in their order.

        Raises:
            UserError: A mistake of the user's.
        """
        for number, replies in rounds:
            flight = self._flights[number]
            flight.outputs = [*replies]
            yield self._moved(flight, flight.deliver)

    def _moved(self, flight: Flight, go: Callable[[], None]) -> Move[Read]:
        """Lets a combiner go on; it may return by it, or fail alone."""
        try:
            with blame("combiner"), time_limit(self.timeout):
                go()
            if not flight.landed:
                return Move(flight.number, flight.reads)
            line = self._line(flight)
        except ExampleError as error:
            return self._failed(flight.number, flight.example, error)
        del self._flights[flight.number]
        return Move(flight.number, line=line)

    def _line(self, flight: Flight) -> bytes:
        """Returns what the journal says of a finished example; what cannot be said fails it."""
        with blame("combiner"):
            prediction = prediction_of(flight)
        if self.normalise:
            with blame("task"):
                text = self.normalise(prediction.prediction, flight.example)
                prediction = dataclasses.replace(prediction, prediction=text)
        with blame("metric"):
            statistics = self._statistics(prediction, flight.example)
        with blame("combiner"):
            row: dict[str, Any] = {
                "done": flight.number,
                "prediction": prediction_row(prediction),
                "calls": call_rows(flight.calls),
                "notes": flight.notes,
                "statistics": statistics,
            }
            return Journal.encode(row)

    def _failed(self, number: int, example: Example, error: ExampleError) -> Move[Read]:
        self._flights.pop(number, None)
        try:
            with blame("metric"):
                statistics = self._statistics(empty_prediction(example), example)
        except ExampleError:  # a metric that cannot score even this
            statistics = {}
        row = {"done": number, "failure": failure_row(example, error), "statistics": statistics}
        return Move(number, line=Journal.encode(row), failed=True)

    def _statistics(self, prediction: Prediction, example: Example) -> dict[str, Any]:
        return {n: metric.statistics(prediction, example) for n, metric in self.metrics.items()}
