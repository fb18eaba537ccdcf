"""What a person sees of an answer that is made of items: each with what supports it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from leporello.core.items import Item
from leporello.core.records import Document, Span
from leporello.text.outline import cited

_ITEMS_SHOWN = 30
_PASSAGES_SHOWN = 3
_AROUND = 60  # characters of the passage before and behind the item


def show_items(console: Console, items: Sequence[Item], document: Document) -> None:
    """Prints items, the passages that each was read in, and what stands around it there."""
    for number, item in enumerate(items[:_ITEMS_SHOWN], 1):
        console.print(f"{number}. [bold]{escape(item.text)}[/bold]", highlight=False)
        for span in item.passages[:_PASSAGES_SHOWN]:
            head = escape(cited(document, span))
            console.print(f"   {head}  [dim]{_around(document, span, item.text)}[/dim]")
        if (more := len(item.passages) - _PASSAGES_SHOWN) > 0:
            console.print(f"   and {more:,} more passages")
    if (more := len(items) - _ITEMS_SHOWN) > 0:
        console.print(f"and {more:,} more items, which predictions.jsonl has in `raw`")


def _around(document: Document, span: Span, item: str) -> str:
    """Returns what stands around an item in a passage, or how the passage begins."""
    text = document.text[span.start : span.end]
    words = r"\s+".join(map(re.escape, item.split()))
    match = re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) if words else None
    start, end = match.span() if match else (0, 0)
    first, last = max(start - _AROUND, 0), end + _AROUND * (1 if match else 2)
    shown = " ".join(text[first:last].split())
    return escape(("… " if first else "") + shown + (" …" if last < len(text) else ""))
