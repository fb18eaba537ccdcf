"""What `compare` shows in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leporello.cli.display.tables import new_table
from leporello.core.table import ResultTable

_WIDEST = 10_000  # characters


def comparison(console: Console, tables: Iterable[ResultTable], *, wide: bool = False) -> None:
    """Prints tables, each with its notes below; off a terminal as wide as need be, if `wide`."""
    for result in tables:
        table = _table(result)
        options = console.options.update(max_width=_WIDEST)
        if wide and not console.is_terminal:
            console.width = max(console.width, table.__rich_measure__(console, options).maximum)
        console.print(table)
        for note in result.notes:
            style = "yellow" if note.startswith("warning") else "dim"
            console.print(note, style=style, markup=False, highlight=False, soft_wrap=True)
        if result.notes:
            console.print()


def _table(result: ResultTable) -> Table:
    table = new_table(escape(result.title), *map(escape, result.headers))
    for row in result.rows:
        table.add_row(*map(escape, row))
    return table
