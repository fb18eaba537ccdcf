"""Tables: of text, as a notebook shows them, and of values, as pandas has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from leporello.core.environment.extras import require

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of text.

    Attributes:
        title: Title, which says what it shows.
        headers: Headers of the columns; the first column names the row.
        rows: Cells of each row, as many as there are headers.
        notes: Notes to know when reading it.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def html(tables: Iterable[ResultTable]) -> str:
    """Returns tables as HTML tables, as notebooks show them."""
    return "\n".join(map(_html, tables))


def _html(table: ResultTable) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in table.headers)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in table.rows
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    caption = f"<caption>{escape(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def frame(rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Returns rows as a frame of pandas.

    Raises:
        UserError: pandas is not installed.
    """
    require("a frame", "pandas")
    import pandas

    return pandas.DataFrame([*rows])
