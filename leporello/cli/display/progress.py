"""The progress bar of a run: documents, examples, tokens a second, time left."""

from __future__ import annotations

import sys


class RichProgress:
    """A bar in the terminal, as `leporello.engine.progress.ProgressDisplay` wants it."""

    def __init__(self, title: str, examples: int | None) -> None:
        """Draws nothing yet."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(title, total=examples, counts="")
        self.start, self.stop = self._bar.start, self._bar.stop

    def update(self, advance: int, counts: str) -> None:
        """See `ProgressDisplay`."""
        self._bar.update(self._task, advance=advance, counts=counts)


def progress_bar(title: str, examples: int | None) -> RichProgress | None:
    """Returns a bar; None where standard error is no terminal."""
    return RichProgress(title, examples) if sys.stderr.isatty() else None
