"""Progress bar in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column


class RichProgress:
    """Progress bar in the terminal: a `leporello.engine.progress.ProgressDisplay`."""

    def __init__(self, title: str, examples: int | None, console: Console) -> None:
        """Creates the bar; `start` draws it."""
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
            ),
            BarColumn(20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=console,
            transient=True,
            expand=True,
        )
        self._task = self._bar.add_task(title, total=examples, counts="")
        self.start, self.stop = self._bar.start, self._bar.stop

    def update(self, advance: int, counts: str) -> None:
        """See `ProgressDisplay`."""
        self._bar.update(self._task, advance=advance, counts=counts)
