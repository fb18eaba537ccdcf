"""Who is told of what an engine does: a listener, counts, and what draws them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from leporello.core.errors import Stopped

if TYPE_CHECKING:
    from leporello.engine.reading import ReadStatistics


class ProgressDisplay(Protocol):
    """Draws how far something is."""

    def start(self) -> None:
        """Begins to draw."""
        ...

    def update(self, advance: int, counts: str) -> None:
        """Draws that so many more examples are finished, beside a line of counts."""
        ...

    def stop(self) -> None:
        """Ends, and leaves nothing behind."""
        ...


# Makes a display of a title and a number of examples; None draws nothing. One a process, as for
# logging: what runs need not know where it is looked at.
_make_display: Callable[[str, int | None], ProgressDisplay | None] = lambda _title, _examples: None  # noqa: E731 -- replaced by the one function below


def show_progress_with(make: Callable[[str, int | None], ProgressDisplay | None]) -> None:
    """Has progress drawn from now on.

    Args:
        make: Function that makes a display of a title and a number of examples (None: unknown), or
            returns None where there is nothing to draw on.
    """
    global _make_display  # noqa: PLW0603 -- one display a process
    _make_display = make


@dataclass
class ProgressCounts:
    """What has been done since the last time.

    Attributes:
        documents: Number of documents, counted once a pipeline.
        examples: Number of finished examples.
        failed: Number of those that failed.
        tokens: Tokens read and written.
        reading: Number of reads under way.
    """

    documents: int = 0
    examples: int = 0
    failed: int = 0
    tokens: int = 0
    reading: int = 0


@dataclass
class Progress:
    """Counts what is done, and has it drawn.

    Attributes:
        title: Name of what is running.
        examples: Number of examples; None where the task does not know.
        documents: Number of documents done so far.
        finished: Number of examples finished so far, failed ones included.
        failed: Number of examples that failed so far.
        read_tokens: Tokens read and written so far, by all pipelines.
    """

    title: str
    examples: int | None = None
    documents: int = 0
    finished: int = 0
    failed: int = 0
    read_tokens: int = 0
    _waiting: int = 0
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._display = _make_display(self.title, self.examples)

    def __enter__(self) -> Progress:
        if self._display:
            self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._display:
            self._display.stop()

    def document(self) -> None:
        """Counts a document whose examples have all been admitted."""
        self.documents += 1
        self._update(0)

    def already_done(self, examples: int) -> None:
        """Counts examples that an earlier process has finished."""
        self._update(examples)

    def example(self, failed: bool = False) -> None:
        """Counts a finished example."""
        self.finished += 1
        self.failed += failed
        self._update(1)

    def reading(self, reads: int) -> None:
        """Says that so many reads are under way."""
        self._waiting = reads
        self._update(0)

    def tokens(self, count: int) -> None:
        """Counts tokens that were read or written."""
        self.read_tokens += count
        self._waiting = 0
        self._update(0)

    def take(self, progressed: ProgressCounts) -> None:
        """Counts what a worker has done since the last time."""
        self.documents += progressed.documents
        self.finished += progressed.examples
        self.failed += progressed.failed
        self.read_tokens += progressed.tokens
        self._waiting = progressed.reading
        self._update(progressed.examples)

    def _update(self, advance: int) -> None:
        if not self._display:
            return
        seconds = time.monotonic() - self._started
        counts = f"{self.documents} documents, {self.read_tokens / seconds:,.0f} tokens/s"
        if self._waiting:
            counts += f", reading {self._waiting} inputs"
        if self.failed:
            counts += f", {self.failed} failed"
        self._display.update(advance, counts)


class Listener(Protocol):
    """Is told of every step; what it raises ends the run."""

    def before_step(self) -> None:
        """Is asked before anything is read; may raise `Stopped`."""
        ...

    def document(self) -> None:
        """All examples on a document have been admitted, or skipped."""
        ...

    def example(self, *, failed: bool = False) -> None:
        """An example is finished."""
        ...

    def reading(self, reads: int) -> None:
        """The reader begins to read so many inputs."""
        ...

    def has_read(self, statistics: ReadStatistics) -> None:
        """The reader has read; the statistics are of all that it has read so far."""
        ...


class Silent:
    """Does nothing of it."""

    def before_step(self) -> None:
        """See `Listener`."""

    def document(self) -> None:
        """See `Listener`."""

    def example(self, *, failed: bool = False) -> None:
        """See `Listener`."""

    def reading(self, reads: int) -> None:
        """See `Listener`."""

    def has_read(self, statistics: ReadStatistics) -> None:
        """See `Listener`."""


class Cancellable(Silent):
    """Ends what it listens to before its next step, once it is told to."""

    cancelled = False

    def cancel(self) -> None:
        """Asks for the end."""
        self.cancelled = True

    def before_step(self) -> None:
        """See `Listener`."""
        if self.cancelled:
            raise Stopped("nobody waits for the answer")


class ProgressListener:
    """The listener of an engine in this process: counts what is done."""

    def __init__(self, progress: Progress, check: Callable[[], None] = lambda: None) -> None:
        """Takes a bar, and what is asked before each step."""
        self._progress, self._check, self._tokens = progress, check, 0
        self.document, self.reading = progress.document, progress.reading

    def before_step(self) -> None:
        """See `Listener`."""
        self._check()

    def example(self, *, failed: bool = False) -> None:
        """See `Listener`."""
        self._progress.example(failed)

    def has_read(self, statistics: ReadStatistics) -> None:
        """See `Listener`."""
        tokens = statistics.input_tokens + statistics.output_tokens
        self._progress.tokens(tokens - self._tokens)
        self._tokens = tokens
