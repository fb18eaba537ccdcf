"""Documents and hits in, finished examples out: combiners in flight over one pooled reader.

Combiners in flight over many examples ask for reads; their reads are pooled in windows, so that
batches are full whatever shape a combiner has. Examples are admitted in task order, and windows
are taken in an order that the journal can rebuild: what a float reader says can depend on its
batch mates, so a resumed run must make up the same batches.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.config import Built
from leporello.flight import ExampleError, Flight, blame
from leporello.journal import Journal
from leporello.launch import launch
from leporello.metrics import Metric
from leporello.progress import Progress
from leporello.reading import Pool, inputs_at_once
from leporello.records import Example, Prediction
from leporello.rows import (
    call_rows,
    empty_prediction,
    failure_row,
    output_from_row,
    output_row,
    prediction_of,
    prediction_row,
)
from leporello.selection import Found
from leporello.supply import Normaliser
from leporello.time_limit import time_limit

if TYPE_CHECKING:
    from leporello.cache import Shelf

__all__ = ["Engine", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is under way at once; part of what makes two runs byte-identical.

    Attributes:
        flights: Examples in flight at most.
        inputs: Reads in one window at most, unless the reader's class wants more `at_once`; no
            example is admitted while as many wait.
        example_timeout: Seconds that a call of a stage may take for each example in it.
    """

    flights: int = 64
    inputs: int = 32
    example_timeout: float | None = None


class Engine:
    """Runs one pipeline over the examples of one task, which are offered to it in task order.

    Attributes:
        stages: The pipeline's; chunker and retriever are asked only for what combiners search.
        journal: What earlier processes left, and what this one finishes.
        metrics: Whose statistics are kept with each example.
        progress: Told of everything.
        limits: How much is under way at once.
        pool: The reader.
    """

    def __init__(
        self,
        stages: Built,
        journal: Journal,
        metrics: Mapping[str, Metric],
        progress: Progress,
        limits: Limits = Limits(),
        *,
        normalise: Normaliser | None = None,
        shelf: Shelf | None = None,
        before_step: Callable[[], None] = lambda: None,
    ) -> None:
        self.stages, self.journal, self.metrics = stages, journal, metrics
        self.progress, self.limits = progress, limits
        self.pool = Pool(stages.reader, shelf, limits.example_timeout)
        self._normalise, self._before_step = normalise, before_step
        self._inputs = max(limits.inputs, inputs_at_once(stages.reader))
        self._flights: list[Flight] = []
        self._admitted = 0

    def offer(
        self, first: int, examples: Sequence[Example], found: Sequence[Found | ExampleError]
    ) -> None:
        """Takes in all examples on one document, reading as often as makes room for them.

        Args:
            first: Number of the first example, in task order.
            examples: In task order; those that the journal holds are passed over.
            found: What was selected for each, or why nothing was.

        Raises:
            UserError: A mistake of the user's; what is finished stays finished.
        """
        for number, (example, own) in enumerate(zip(examples, found, strict=True), first):
            self._make_room()
            if number not in self.journal.done:
                self._take_in(number, example, own)

    def pass_over(self, count: int) -> None:
        """Counts examples on one document that the journal holds, all of them."""
        for _ in range(count):
            self._make_room()

    def finish(self) -> None:
        """Finishes what is in flight.

        Raises:
            UserError: As `offer`.
        """
        while self._flights:
            self._step()

    # -- admission -------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Reads until another example may be admitted, and counts it."""
        while not self._has_room():
            self._step()
        self._admitted += 1

    def _has_room(self) -> bool:
        if self._admitted < (self.journal.cursors or [0])[-1]:
            return True  # a resumed run first admits again whatever had been admitted
        waiting = sum(len(flight.reads) - len(flight.outputs) for flight in self._flights)
        return len(self._flights) < self.limits.flights and waiting < self._inputs

    def _take_in(self, number: int, example: Example, found: Found | ExampleError) -> None:
        if isinstance(found, ExampleError):
            self._fail(number, example, found)
            return
        self._take_off(launch(self.stages, number, example, found))

    def _take_off(self, flight: Flight) -> None:
        """Starts a flight, and flies it as far as the journal's recorded outputs reach."""
        step = self.journal.admitted_before(flight.number)
        flight.order = (len(self.journal.cursors) if step is None else step, 1, flight.number)
        self._guarded(flight, flight.start)
        for step, row in self.journal.recorded(flight.number):
            flight.outputs.append(output_from_row(row))
            if len(flight.outputs) == len(flight.reads):
                flight.order = (step + 1, 0, flight.number)
                self._guarded(flight, flight.deliver)
        if not flight.landed:
            self._flights.append(flight)

    def _guarded(self, flight: Flight, move: Callable[[], None]) -> None:
        """Makes a move of a flight; it may land by it, or fail alone."""
        try:
            with blame("combiner"), time_limit(self.limits.example_timeout):
                move()
            if flight.landed:
                self._finish(flight)
        except ExampleError as error:
            flight.landed = True
            self._fail(flight.number, flight.example, error)

    # -- reading ---------------------------------------------------------------------------

    def _step(self) -> None:
        """Reads one window, records it, and hands complete rounds over."""
        self._before_step()
        window = self._window()
        self.progress.reading(len(window))
        outputs = self.pool.read([flight.reads[place] for flight, place in window])
        self.progress.has_read(self.pool.tally)
        numbers = [flight.number for flight, _ in window]
        rows = [output_row(output) for output in outputs]
        self.journal.step(self._admitted, list(zip(numbers, rows, strict=True)))
        for (flight, _), output in zip(window, outputs, strict=True):
            flight.outputs.append(output)
        for flight in {flight.number: flight for flight, _ in window}.values():
            if len(flight.outputs) == len(flight.reads):
                flight.order = (len(self.journal.cursors), 0, flight.number)
                self._guarded(flight, flight.deliver)
        self._flights = [flight for flight in self._flights if not flight.landed]

    def _window(self) -> list[tuple[Flight, int]]:
        """Returns the next reads in order, each as (flight, place among its reads)."""
        waiting = (
            (flight, place)
            for flight in sorted(self._flights, key=lambda flight: flight.order)
            for place in range(len(flight.outputs), len(flight.reads))
        )
        return list(itertools.islice(waiting, self._inputs))

    # -- landing ---------------------------------------------------------------------------

    def _finish(self, flight: Flight) -> None:
        """Writes a landed flight down; a row that cannot be made fails it."""
        with blame("combiner"):
            prediction = prediction_of(flight)
        if self._normalise:
            with blame("task"):
                text = self._normalise(prediction.prediction, flight.example)
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
            encoded = self.journal.encode(row)
        self.journal.finish(flight.number, encoded)
        self.progress.example()

    def _fail(self, number: int, example: Example, error: ExampleError) -> None:
        try:
            with blame("metric"):
                statistics = self._statistics(empty_prediction(example), example)
        except ExampleError:  # a metric that cannot score even this
            statistics = {}
        row = {"done": number, "failure": failure_row(example, error), "statistics": statistics}
        self.journal.finish(number, self.journal.encode(row), failed=True)
        self.progress.example(failed=True)

    def _statistics(self, prediction: Prediction, example: Example) -> dict[str, Any]:
        return {n: metric.statistics(prediction, example) for n, metric in self.metrics.items()}
