"""Display of results in a terminal; with `cli`, the only package that imports rich."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from leporello.core.errors import visible

_EXCERPT = 360  # characters


class SafeConsole(Console):
    """Console that escapes control characters of all texts; only rich itself sends any."""

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:  # noqa: ANN401 -- as rich
        """Prints; in a terminal, soft-wrapped texts are folded between words unless `no_wrap`."""
        is_folded = self.is_terminal and not options.get("no_wrap")
        super().print(*objects, soft_wrap=soft_wrap and not is_folded, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yields the segments of an object, with escapes in place of control characters."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)


def excerpt(text: str, most: int = _EXCERPT) -> str:
    """Returns the beginning of a text, at most this many characters, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most].rpartition(' ')[0] or flat[:most]} …"


@contextmanager
def progress_display(
    title: str, examples: int | None, console: Console
) -> Iterator[Callable[[int, str], None]]:
    """Shows a progress bar in the terminal; see `leporello.engine.progress.ProgressDisplay`."""
    from rich import progress
    from rich.table import Column

    bar = progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        progress.BarColumn(20),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[counts]}", table_column=Column(no_wrap=True)),
        progress.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
        transient=True,
        expand=True,
    )
    task = bar.add_task(title, total=examples, counts="")
    with bar:
        yield lambda advance, counts: bar.update(task, advance=advance, counts=counts)
