"""One example under way: its combiner's generator, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leporello.errors import UserError
from leporello.notes import hearing
from leporello.records import (
    JSON,
    Chunk,
    Document,
    Example,
    Fit,
    Hit,
    Output,
    Read,
    Request,
    Search,
)
from leporello.redaction import scrub
from leporello.traces import trace_of

__all__ = ["Call", "ExampleError", "Flight", "ReadError", "blame"]


class ExampleError(Exception):
    """An example failed; made of texts, so that it passes between processes.

    Attributes:
        stage: Where it failed.
        told: Why, for the person who reads it.
        trace: The traceback, for whoever wrote the stage.
    """

    def __init__(self, stage: str, told: str, trace: str = "") -> None:
        super().__init__(stage, told, trace)
        self.stage, self.told, self.trace = stage, told, trace

    @classmethod
    def of(cls, stage: str, error: BaseException) -> ExampleError:
        """Returns what an error in a stage comes to; keys that it tells are left out."""
        if isinstance(error, ReadError):
            return cls(stage, str(error), error.trace)
        trace = trace_of(error)
        return cls(stage, scrub(f"{type(error).__name__}: {error}"), scrub(trace))


class ReadError(Exception):
    """A read that failed; thrown into the combiner that asked for it.

    Attributes:
        trace: The reader's traceback.
    """

    def __init__(self, told: str, trace: str = "") -> None:
        super().__init__(told)
        self.trace = trace

    @classmethod
    def of(cls, error: BaseException) -> ReadError:
        """Returns what an error in a reader comes to; keys that it tells are left out."""
        trace = trace_of(error)
        return cls(scrub(f"{type(error).__name__}: {error}"), scrub(trace))


@contextmanager
def blame(stage: str) -> Generator[None]:
    """Turns what a stage raises into `ExampleError`; the user's mistakes stop the run instead."""
    try:
        yield
    except (UserError, ExampleError, KeyboardInterrupt, GeneratorExit):
        raise
    except ReadError as error:
        raise ExampleError.of("reader", error) from error
    except BaseException as error:  # a plug-in that leaves the process fails too
        raise ExampleError.of(stage, error) from error


@dataclass(frozen=True, slots=True)
class Call:
    """One thing that was read, in which round of the example, and what came of it."""

    round: int
    read: Read
    output: Output | ReadError


@dataclass
class Flight:
    """An example between its admission and its answer.

    Attributes:
        number: Of the example, in task order.
        example: With its gold; the combiner was given what it may see.
        hits: What the retriever gave, best first; `Search` adds to them.
        combiner: Its generator.
        answer_now: Answers a `Search` or a `Fit`.
        order: Where its reads stand in the queue: (step, admitted after it, number).
        reads: What the present round wants read.
        outputs: Those of `reads` that have come back, in order.
        calls: All reads of earlier rounds.
        notes: What its stages noted.
        value: What the combiner returned.
        landed: Whether it has returned.
    """

    number: int
    example: Example
    hits: list[Hit]
    combiner: Generator[Sequence[Request], list[Any], JSON]
    answer_now: Callable[[Flight, Search | Fit], Any]
    order: tuple[int, int, int] = (0, 0, 0)
    reads: Sequence[Read] = ()
    outputs: list[Output | ReadError] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    value: JSON = None
    landed: bool = False
    _requests: Sequence[Request] = ()
    _round: int = 0

    def tell(self, notes: Iterable[str]) -> None:
        """Adds what is not yet noted."""
        self.notes += [text for text in notes if text not in self.notes]

    def start(self) -> None:
        """Runs the combiner up to its first reads, or its return."""
        self._run(partial(next, self.combiner))

    def deliver(self) -> None:
        """Hands a complete round of outputs over and runs on to the next reads.

        Raises:
            ReadError: A read failed and the combiner did not catch it.
        """
        self.calls += [
            Call(self._round, read, output)
            for read, output in zip(self.reads, self.outputs, strict=True)
        ]
        self._round += 1
        self._run(self._reply(self.outputs))

    def _reply(self, outputs: Sequence[Output | ReadError]) -> Callable[[], Sequence[Request]]:
        for output in outputs:
            if isinstance(output, ReadError):
                return partial(self.combiner.throw, output)
        came = iter(outputs)
        return partial(
            self.combiner.send,
            [next(came) if isinstance(r, Read) else self._now(r) for r in self._requests],
        )

    def _run(self, resume: Callable[[], Sequence[Request]]) -> None:
        with hearing() as notes:
            self._advance(resume)
        self.tell(notes)

    def _advance(self, resume: Callable[[], Sequence[Request]]) -> None:
        self.reads, self.outputs = (), []
        while not self.reads:
            try:
                self._requests = _checked(resume(), self.example.document)
            except StopIteration as stop:
                self.value, self.landed = stop.value, True
                return
            self.reads = [request for request in self._requests if isinstance(request, Read)]
            if not self.reads:
                answers = [self._now(request) for request in self._requests]
                resume = partial(self.combiner.send, answers)

    def _now(self, request: Request) -> Any:  # noqa: ANN401 -- hits or a number
        assert not isinstance(request, Read)
        return self.answer_now(self, request)


def _checked(requests: object, document: Document) -> Sequence[Request]:
    if not isinstance(requests, (list, tuple)) or not all(
        isinstance(request, (Read, Search, Fit)) for request in requests
    ):
        told = f"{requests!r:.200}"
        raise TypeError(f"a combiner must yield a list of Read, Search or Fit, got {told}")
    for request in requests:
        if not isinstance(request, Search):
            _check_read(request.read if isinstance(request, Fit) else request, document)
    return requests


def _check_read(read: Read, document: Document) -> None:
    for passage in read.passages:
        if not isinstance(passage, (str, Chunk)) or (
            isinstance(passage, Chunk) and passage.document is not document
        ):
            raise TypeError(
                f"a passage must be text or a chunk of the example's own document,"
                f" got {passage!r:.200}"
            )
    for name in ("question", "instruction", "title"):
        if not isinstance(getattr(read, name), str):
            raise TypeError(f"a Read's {name} must be text, got {getattr(read, name)!r:.200}")
    for name in ("choices", "pair"):
        if not all(isinstance(text, str) for text in getattr(read, name) or ()):
            raise TypeError(f"a Read's {name} must be texts, got {getattr(read, name)!r:.200}")
