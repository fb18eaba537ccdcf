"""Tables of LaTeX as rows of fields, and the numbers of its lists."""

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
    """Begins and ends rows and cells of a table that is being read.

    In LaTeX, an empty cell follows below each cell that covers several rows; it is left out.
    """

    flow: Flow  # where the table is written
    depth: int  # number of braces that are open around its cells
    columns: int = 1  # number of columns that the current cell covers
    rows: int = 1  # number of rows that it covers
    _column: int = 0
    _below: dict[int, int] = field(default_factory=dict)  # rows left, by column

    def next_cell(self) -> None:
        """Ends the cell and begins the next one."""
        self._end_cell()
        self._begin_cell()

    def next_row(self) -> None:
        """Ends the row and begins the next one with its first cell."""
        self.end_row()
        self.begin_row()

    def _begin_cell(self) -> None:
        """Begins the next cell if no earlier row covers it."""
        if not self._below.get(self._column):
            self.flow.start("td")

    def _end_cell(self) -> None:
        """Ends the cell."""
        if self.columns == self.rows == 1:
            self._column += 1
            return
        columns, rows = min(self.columns, _MOST), min(self.rows, _MOST)
        self.flow.span(columns, rows)
        for column in range(self._column, self._column + columns if rows > 1 else 0):
            self._below[column] = rows
        self._column += columns
        self.columns = self.rows = 1

    def end_row(self) -> None:
        """Ends the cell and the row."""
        self._end_cell()
        self.flow.end("tr")
        self._column = 0
        self._below = {column: rows - 1 for column, rows in self._below.items() if rows > 1}

    def begin_row(self) -> None:
        """Begins the next row with its first cell."""
        self.flow.start("tr")
        self._begin_cell()


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
