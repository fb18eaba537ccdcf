"""Documents in, finished examples out: divide and select once a document, read in one pool.

Combiners in flight over many examples ask for reads; their reads are pooled in windows, so that
batches are full whatever shape a combiner has. Flights are admitted in task order, and windows
are taken in an order that the journal can rebuild: what a float reader says can depend on its
batch mates, so a resumed run must make up the same batches.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from leporello.calls import read, sees_gold
from leporello.config import Built
from leporello.errors import UserError
from leporello.flight import ExampleError, Flight, ReadError, blame
from leporello.journal import Journal
from leporello.metrics import Metric
from leporello.progress import Progress
from leporello.records import (
    JSON,
    Example,
    Fit,
    Hit,
    Output,
    Prediction,
    Read,
    Search,
)
from leporello.rows import (
    call_rows,
    empty_prediction,
    failure_of,
    failure_row,
    output_from_row,
    output_row,
    prediction_of,
    prediction_row,
    rounded,
)
from leporello.selection import select, select_apart
from leporello.stages import RendersPrompt

__all__ = ["Engine", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is under way at once; part of what makes two runs byte-identical.

    Attributes:
        flights: Examples in flight at most.
        inputs: Reads in one window at most; no example is admitted while as many wait.
    """

    flights: int = 64
    inputs: int = 32


class Engine:
    """Runs one pipeline over the examples of one task."""

    def __init__(
        self,
        stages: Built,
        journal: Journal,
        metrics: Mapping[str, Metric],
        progress: Progress,
        limits: Limits = Limits(),
    ) -> None:
        self.stages, self.journal, self.metrics = stages, journal, metrics
        self.progress, self.limits = progress, limits
        self.seconds = {"select": 0.0, "read": 0.0}
        self._flights: list[Flight] = []
        self._admitted = 0

    def run(self, examples: Iterable[Example]) -> None:
        """Finishes every example that the journal does not hold, as a row in the journal.

        Raises:
            UserError: A stage met a mistake of the user's; what is finished stays finished.
        """
        arrivals = self._arrivals(examples)
        while True:
            self._admit(arrivals)
            if not self._flights:
                return
            self._step()

    def timings(self) -> dict[str, float]:
        """Returns seconds spent in selecting and reading, documents and tokens, so far."""
        counts = {"documents": self.progress.documents, "tokens": self.progress.read_tokens}
        return {**self.seconds, **counts}

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[part] += time.monotonic() - started

    # -- admission -------------------------------------------------------------------------

    def _admit(self, arrivals: Iterator[Flight | None]) -> None:
        """Starts flights in task order until enough are in flight or enough reads wait."""
        while self._has_room():
            try:
                flight = next(arrivals)
            except StopIteration:
                return
            self._admitted += 1
            if flight is not None:
                self._take_off(flight)

    def _has_room(self) -> bool:
        if self._admitted < (self.journal.cursors or [0])[-1]:
            return True  # a resumed run first admits again whatever had been admitted
        waiting = sum(len(flight.reads) - len(flight.outputs) for flight in self._flights)
        return len(self._flights) < self.limits.flights and waiting < self.limits.inputs

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

    def _guarded(self, flight: Flight, move: Any) -> None:  # noqa: ANN401 -- a bound method
        """Makes a move of a flight; it may land by it, or fail alone."""
        try:
            with blame("combiner"):
                move()
            if flight.landed:
                self._finish(flight)
        except ExampleError as error:
            flight.landed = True
            self._fail(flight.number, flight.example, error)

    # -- divide and select -----------------------------------------------------------------

    def _arrivals(self, examples: Iterable[Example]) -> Iterator[Flight | None]:
        """Yields a flight for every example in task order; None for one already finished."""
        numbered = enumerate(examples)
        for _, group in itertools.groupby(numbered, key=lambda pair: id(pair[1].document)):
            pairs = list(group)
            fresh = [pair for pair in pairs if pair[0] not in self.journal.done]
            # All questions are asked even if some are answered: a retriever may batch them.
            flights = self._select(pairs) if fresh else {}
            for number, _ in pairs:
                yield flights.get(number)
            self.progress.document(len(pairs) - len(fresh))

    def _select(self, pairs: Sequence[tuple[int, Example]]) -> dict[int, Flight]:
        """Divides one document and selects for all its questions in one call."""
        with self._timed("select"):
            found = select_apart(self.stages, [example for _, example in pairs])
        flights = {}
        for (number, example), hits in zip(pairs, found, strict=True):
            if number in self.journal.done:
                continue
            if isinstance(hits, ExampleError):
                self._fail(number, example, hits)
                continue
            combiner = self._combine(example, hits)
            flights[number] = Flight(number, example, hits, combiner, self._answer_now)
        return flights

    def _combine(self, example: Example, hits: Sequence[Hit]) -> Generator[Any, list[Any], JSON]:
        """Runs the combiner as a generator, also one that answers at once."""
        combiner = self.stages.combiner
        visible = example if sees_gold(combiner) else example.without_gold()
        made = combiner.combine(visible, tuple(hits))
        if inspect.isgenerator(made):
            made = yield from made
        answer: JSON = made
        return answer

    def _answer_now(self, flight: Flight, request: Search | Fit) -> Any:  # noqa: ANN401 -- hits or a number
        if isinstance(request, Fit):
            reader = self.stages.reader
            if not isinstance(reader, RendersPrompt):
                return len(request.read.passages)  # no window is known: all of it fits
            with blame("reader"):
                return reader.fit(request.read)
        with blame("retriever"):
            asked = dataclasses.replace(flight.example, question=request.question)
            [hits] = select(self.stages, [asked])
        known = {hit.chunk.span for hit in flight.hits}
        flight.hits += [hit for hit in hits if hit.chunk.span not in known]
        return tuple(hits)

    # -- reading ---------------------------------------------------------------------------

    def _step(self) -> None:
        """Reads one window, records it, and hands complete rounds over."""
        window = self._window()
        self.progress.reading(len(window))
        with self._timed("read"):
            outputs = self._read([flight.reads[place] for flight, place in window])
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
        return list(itertools.islice(waiting, self.limits.inputs))

    def _read(self, reads: Sequence[Read]) -> list[Output | ReadError]:
        """Reads a window; one that fails is halved until the guilty input is alone."""
        try:
            outputs = read(self.stages.reader, reads)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            if len(reads) == 1:
                return [ReadError(f"{type(error).__name__}: {error}")]
            half = len(reads) // 2
            return [*self._read(reads[:half]), *self._read(reads[half:])]
        self.progress.tokens(sum(out.input_tokens + out.output_tokens for out in outputs))
        return [_rounded(output) for output in outputs]

    # -- landing ---------------------------------------------------------------------------

    def _finish(self, flight: Flight) -> None:
        with blame("combiner"):
            prediction = prediction_of(flight)
        row: dict[str, Any] = {
            "prediction": prediction_row(prediction),
            "calls": call_rows(flight.calls),
            "statistics": self._statistics(prediction, flight.example),
        }
        self.journal.finish(flight.number, row)
        self.progress.example()

    def _fail(self, number: int, example: Example, error: ExampleError) -> None:
        try:
            statistics = self._statistics(empty_prediction(example), example)
        except ExampleError:  # a metric that cannot score even this
            statistics = {}
        failure = failure_row(failure_of(example, error), error)
        self.journal.finish(number, {"failure": failure, "statistics": statistics})
        self.progress.example(failed=True)

    def _statistics(self, prediction: Prediction, example: Example) -> dict[str, Any]:
        with blame("metric"):
            return {
                name: metric.statistics(prediction, example)
                for name, metric in self.metrics.items()
            }


def _rounded(output: Output) -> Output:
    """Rounds scores before anything compares them; what is not a number is no score."""
    score = output.score
    if score is not None and not math.isfinite(score):
        score = None
    return dataclasses.replace(
        output,
        score=None if score is None else rounded(score),
        scores=tuple(rounded(each) for each in output.scores),
    )
