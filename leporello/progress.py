"""The progress bar of a run: documents, examples, tokens a second, time left."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

__all__ = ["Progress"]


@dataclass
class Progress:
    """Counts what is done; draws only on a terminal.

    Attributes:
        title: What is running.
        examples: How many there are, None where the task does not know.
        documents: Done so far.
        failed: Examples that failed so far.
        read_tokens: Read and written so far.
    """

    title: str
    examples: int | None = None
    documents: int = 0
    failed: int = 0
    read_tokens: int = 0
    _waiting: int = 0
    _started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        columns = [
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        ]
        console = Console(stderr=True)
        self._bar = Bar(*columns, console=console, disable=not sys.stderr.isatty(), transient=True)
        self._task = self._bar.add_task(self.title, total=self.examples, counts="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def document(self, already_done: int = 0) -> None:
        """Counts a document whose examples have all been admitted."""
        self.documents += 1
        self._update(already_done)

    def example(self, failed: bool = False) -> None:
        """Counts a finished example."""
        self.failed += failed
        self._update(1)

    def reading(self, inputs: int) -> None:
        """Says that the reader is at work on a window."""
        self._waiting = inputs
        self._update(0)

    def tokens(self, count: int) -> None:
        """Counts tokens that the reader read and wrote."""
        self.read_tokens += count
        self._waiting = 0
        self._update(0)

    def _update(self, advance: int) -> None:
        seconds = time.monotonic() - self._started
        counts = f"{self.documents} documents, {self.read_tokens / seconds:,.0f} tokens/s"
        if self._waiting:
            counts += f", reading {self._waiting} inputs"
        if self.failed:
            counts += f", {self.failed} failed"
        self._bar.update(self._task, advance=advance, counts=counts)
