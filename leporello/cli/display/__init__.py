"""Display of results in a terminal; with `cli`, the only package that imports rich.

Begin with `tables`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from leporello.core.errors import visible

_EXCERPT = 360  # characters
_FIRST = 20  # characters of the file and the outermost heading


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


def place_within(place: str, console: Console, taken: int = 0) -> str:
    """Returns a place of a document, shortened to fit in a line of a terminal.

    Args:
        place: File and headings, such as `report.md The Title > 3 Works > 3.5 The memorandum`.
        console: Console whose width is the limit; without a terminal nothing is shortened.
        taken: Number of further characters in the line.
    """
    room = console.width - taken
    first, *headings = place.split(" > ")
    if not console.is_terminal or len(place) <= room or not headings:
        return place
    # The file and the innermost heading are kept.
    below = " > ".join(["", *headings])
    if len(below) > room - _FIRST:
        below = f" > … > {headings[-1]}"
    free = max(room - len(below) - 2, _FIRST)
    short = (first if len(first) <= free else f"{first[:free].rpartition(' ')[0]} …") + below
    return short if len(short) <= room else f"{short[: max(room, _FIRST) - 1]}…"
