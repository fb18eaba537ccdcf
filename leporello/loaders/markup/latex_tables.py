"""Tables of LaTeX as rows of fields, and the numbers of its lists."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from leporello.loaders.flow import Flow
from leporello.loaders.numbering import numeral

_FORMS = ("1.", "(a)", "i.", "A.")  # of numbers in lists within each other
_START = re.compile(r"\bstart\s*=\s*(\d{1,6})")
_TEMPLATE = re.compile(r"\blabel\*?\s*=\s*([^,\]]*)|\[([^=\[\]]*)\]")
_STYLE = re.compile(r"\\(?!arabic|[aA]lph|[rR]oman)[a-zA-Z]+|[{}*]")
_PLACEHOLDER = re.compile(r"\\(?:arabic|[aA]lph|[rR]oman)|[1aAiI]")
_FIRST = {"\\arabic": "1", "\\alph": "a", "\\Alph": "A", "\\roman": "i", "\\Roman": "I"}
_MOST = 1000  # columns or rows that a cell may cover


@dataclass
class LatexTable:
    """A table that is being read.

    A cell that covers several fields is repeated in each of them, unless it is a row by itself.

    Attributes:
        around: Text around the table.
        depth: Number of braces that are open around its cells.
        cell: Text of the cell that is being read.
        columns: Number of columns that it covers.
        rows: Number of rows that it covers.
        has_rows: Whether a row was written.
    """

    around: Flow
    depth: int
    cell: Flow = field(default_factory=Flow)
    columns: int = 1
    rows: int = 1
    has_rows: bool = False
    _row: list[str] = field(default_factory=list)
    _cells: int = 0  # of the row
    _below: dict[int, tuple[int, str]] = field(default_factory=dict)  # rows left, by column

    def end_cell(self) -> None:
        """Ends the cell."""
        text = " ".join("".join(self.cell.pieces).split())
        self.around.losses += self.cell.losses
        self.cell.pieces.clear()
        self.cell.losses.clear()
        for _ in range(min(self.columns, _MOST)):
            column = len(self._row)
            remaining, above = self._below.get(column, (0, ""))
            if self.rows > 1:
                self._below[column] = (min(self.rows, _MOST) - 1, text)
            elif remaining:
                self._below[column] = (remaining - 1, above)
            self._row.append(text or (above if remaining else ""))
        self._cells += 1
        self.columns = self.rows = 1

    def end_row(self) -> str:
        """Ends the row; returns its fields with tabs between them, empty without text."""
        self.end_cell()
        row = self._row[:1] if self._cells == 1 else self._row
        self._row, self._cells = [], 0
        return "\t".join(row) if any(row) else ""


class LatexList:
    """A list that is being read.

    Args:
        name: Name of its environment.
        options: Options of the environment, which may give the form of its numbers.
        depth: Number of numbered lists around it.

    Attributes:
        is_numbered: Whether its items have numbers.
        number: Number of the last item.
    """

    def __init__(self, name: str, options: str, depth: int) -> None:
        self.is_numbered = name.endswith(("enumerate", "enum"))
        self.number, self._form = 0, _FORMS[min(depth, len(_FORMS) - 1)]
        if start := _START.search(options):
            self.number = int(start[1]) - 1
        if template := _TEMPLATE.search(options):
            form = _STYLE.sub("", template[1] or template[2] or "")
            self._form = form if _PLACEHOLDER.search(form) else self._form

    def label(self) -> str:
        """Returns the label of the next item."""
        if not self.is_numbered:
            return "-"
        self.number += 1
        return _PLACEHOLDER.sub(
            lambda form: numeral(self.number, _FIRST.get(form[0], form[0])), self._form, count=1
        )
