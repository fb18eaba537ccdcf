"""Progress of an engine: listeners, counts and displays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import monotonic  # by name: a stage may replace functions of `time`
from typing import TYPE_CHECKING, TypeAlias

from leporello.core.errors import Stopped, counted

if TYPE_CHECKING:
    from leporello.engine.reading import ReadStatistics


# Shows a display, and returns the function that advances it by a number of finished examples, and
# that shows a line of counts.
ProgressDisplay: TypeAlias = AbstractContextManager[Callable[[int, str], None]]

# Creates a display from a title and a number of examples; None displays nothing. There is one per
# process, as for logging, so code that runs pipelines needs no display as an argument.
_make_display: Callable[[str, int | None], ProgressDisplay | None] = lambda _title, _examples: None  # noqa: E731 -- replaced by the one function below


def show_progress_with(make: Callable[[str, int | None], ProgressDisplay | None]) -> None:
    """Sets the function that creates the displays of progress of this process."""
    global _make_display  # noqa: PLW0603 -- one display per process
    _make_display = make


@dataclass
class ProgressCounts:
    """Progress since the last report."""

    documents: int = 0  # number of documents, counted once per pipeline
    examples: int = 0
    failed: int = 0
    reading: int = 0  # number of reads without a reply


@dataclass
class Progress:
    """Counts documents and examples, and updates the display."""

    title: str
    examples: int | None = None  # number of examples; None if the task does not know it
    documents: int = 0  # number of documents processed so far
    finished: int = 0  # number of examples finished so far, including failed ones
    failed: int = 0  # number of examples that failed so far
    _waiting: int = 0
    _started: float = field(default_factory=monotonic)

    def __post_init__(self) -> None:
        self._display = _make_display(self.title, self.examples)

    def __enter__(self) -> Progress:
        if self._display:
            self._show = self._display.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._display:
            self._display.__exit__(None, None, None)

    def already_done(self, examples: int) -> None:
        """Counts examples that an earlier process has finished."""
        self._update(examples)

    def example(self, failed: bool = False) -> None:
        """Counts a finished example."""
        self.take(ProgressCounts(examples=1, failed=int(failed)))

    def take(self, counts: ProgressCounts) -> None:
        """Adds the progress since the last report."""
        self.documents += counts.documents
        self.finished += counts.examples
        self.failed += counts.failed
        # The latest number, not a sum: it describes a state, and workers report it again and again.
        self._waiting = counts.reading
        self._update(counts.examples)

    def _update(self, advance: int) -> None:
        if not self._display:
            return
        rate = self.finished / (monotonic() - self._started)
        counts = [f"{rate:,.3g} examples/s"] * bool(rate)
        # Until the first example is finished, documents show that selecting makes progress.
        counts += [counted(self.documents, "document")] * bool(self.documents and not self.finished)
        counts += [f"reading {counted(self._waiting, 'input')}"] * bool(self._waiting)
        counts += [f"{self.failed} failed"] * bool(self.failed)
        self._show(advance, ", ".join(counts))


class Listener:
    """Counts and reports the events of engines; ends an engine that is cancelled."""

    def __init__(
        self,
        report: Callable[[ProgressCounts], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
        every: float = 0.0,
    ) -> None:
        """Takes the seconds between reports, and a `check` that raises `Stopped` to end the run."""
        self.report, self._check, self._every = report, check, every
        self.cancelled = False
        self._counts, self._reported = ProgressCounts(), 0.0

    def cancel(self) -> None:
        """Stops an engine before its next read."""
        self.cancelled = True

    def before_step(self) -> None:
        """Called before each read; raises `Stopped` to end the run."""
        if self.cancelled:
            raise Stopped("the caller no longer waits for the answer")
        self._check()

    def document(self) -> None:
        """Called when all examples on a document have been started or skipped."""
        self._counts.documents += 1
        self.flush(self._every)

    def example(self, *, failed: bool = False) -> None:
        """Called when an example is finished."""
        self._counts.examples += 1
        self._counts.failed += failed
        # Failures at once, so users can stop early if everything fails.
        self.flush(0.0 if failed else self._every)

    def reading(self, reads: int) -> None:
        """Called before a reader reads a batch, with its number of reads."""
        self._counts.reading = reads
        self.flush(self._every)

    def has_read(self, statistics: ReadStatistics) -> None:  # noqa: ARG002 -- for `serve`
        """Called after a reader has read a batch, with its statistics so far."""
        self._counts.reading = 0

    def flush(self, after: float = 0.0) -> None:
        """Sends a report if the last one is at least `after` seconds old."""
        if (now := monotonic()) - self._reported >= after:
            self._reported = now
            counts, self._counts = self._counts, ProgressCounts()
            self.report(counts)
