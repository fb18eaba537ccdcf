"""Display of results in a terminal; with `cli`, the only package that imports rich.

Begin with `tables`.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from leporello.core.errors import visible

_EXCERPT = 360  # characters


class SafeConsole(Console):
    """Console that escapes control characters of all texts; only rich itself sends any."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yields the segments of an object, with escapes in place of control characters."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(visible(text), style)


def excerpt(text: str) -> str:
    """Returns the beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _EXCERPT else f"{flat[:_EXCERPT]} …"
