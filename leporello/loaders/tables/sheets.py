"""Spreadsheets: the last computed values of cells, sheet by sheet."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import chain
from pathlib import Path
from struct import unpack
from typing import TYPE_CHECKING
from zipfile import ZipFile

from leporello.core.errors import UserError
from leporello.core.records import Document, Loss
from leporello.loaders.files import OLE, ZIP, Format
from leporello.loaders.office.archive import losses_of, members, parsed, read, title_of, unpacked
from leporello.loaders.tables import ods, xlsx
from leporello.loaders.tables.marks import Marks, check_size, number
from leporello.loaders.tables.rows import NOTHING, Header, Hidden, letters, written
from leporello.text.outline import joined

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

_BOOKS = ("Workbook".encode("utf-16-le"), "Book".encode("utf-16-le"))
# Rows and columns of a sheet of an old workbook, in a record before its first row or its options.
_EXTENT = re.compile(rb"\x00\x02\x0e\x00(.{12})..(?:\x08\x02\x10|\x2a\x00\x02)\x00", re.S)
# The first records of an encrypted workbook: its begin, perhaps WRITEPROTECT, and FILEPASS.
_LOCKED = re.compile(rb"\x09\x08\x10\x00.{16}(?:\x86\x00\x00\x00)?\x2f\x00", re.S)
_OLD = Loss(
    "marks of cells",
    "hidden rows and columns of this old workbook are read; errors, units, comments and objects are"
    " not; save it as xlsx",
)
_BINARY = "xl/workbook.bin"
_MARKS = {"xl/workbook.xml", _BINARY}
_ODS = b"application/vnd.oasis.opendocument.spreadsheet"
_HOW_TO_READ = "the loader {class: Sheets, hidden: true} reads it"
_NOT_READ = "comments on cells are not read"
_UNCOMPUTED = (
    "formula without a value",
    "was never computed; open the file in a spreadsheet program and save it",
)
_EMBEDDED = {
    r"(xl/charts/chart\d|Object \d+/content.xml)": ("chart", "only its cells are read"),
    r"(xl/media|Pictures)/": ("image", "images are not read"),
    r"xl/embeddings/": ("embedded object", "is not read; save it as a separate file"),
    r"xl/(pivotTables)/": ("pivot table", "only its visible cells are read"),
}
_TEXTS = {
    r"xl/(threadedC|c)omments.*\.xml": ("comment", _NOT_READ),
    r"xl/drawings/drawing\d*\.xml": ("text box", "texts drawn over cells are not read"),
}


@dataclass(frozen=True)
class Sheets(Format):
    """Spreadsheets (xlsx, xls, ods): one line per row, with column names.

    Attributes:
        header: Whether a row names the columns, so that each cell is written as `Name: value`:
            detected (`auto`), the first row (`first`), or no row (`none`).
        hidden: Whether hidden sheets, rows and columns are read too; they are losses otherwise.
    """

    suffixes = (".xlsx", ".xlsm", ".xltx", ".xls", ".ods")
    begins = re.compile(ZIP.pattern + b"|" + re.escape(OLE))
    marked = True

    header: Header = "auto"
    hidden: bool = False

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content suffices
        """Returns whether the file is a workbook of Excel or LibreOffice."""
        if head.startswith(OLE):
            return any(mark in head for mark in _BOOKS)
        names = members(head)
        return bool(_MARKS & names) or (bool(names) and _ODS in head[:200])

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the rows of all sheets; places have the names of cells, `Costs!B7`."""
        from python_calamine import PasswordError, load_workbook

        losses: tuple[Loss, ...] = ()
        title = ""
        marks: Mapping[str, Marks] = {}
        if data.startswith(OLE):
            if _LOCKED.search(data):
                raise UserError(f"{path}: is locked by a password; save an open copy first")
            for extent in _EXTENT.finditer(data):
                row, rows, column, columns = unpack("<2I2H", extent[1])
                # calamine would take the memory, and end the process.
                check_size((rows - row) % 2**32 * ((columns - column) % 2**32), path)
            losses = (_OLD,)
        else:
            with unpacked(data, path) as archive:
                losses, title = (*_lost(archive),), title_of(archive)
                marks = _marks(archive, path)
        try:
            with load_workbook(BytesIO(data)) as book:
                sheets = joined(self._sheets(book, marks))
        except PasswordError:
            raise UserError(f"{path}: is locked by a password; save an open copy first") from None
        except BaseException as error:
            if _is_damage(error):
                raise UserError(f"{path}: is corrupt, or locked by a password ({error})") from None
            raise
        return replace(sheets, title=title, losses=(*sheets.losses, *losses))

    def _sheets(
        self, book: CalamineWorkbook, marks: Mapping[str, Marks]
    ) -> Iterator[tuple[str, Document]]:
        from python_calamine import SheetTypeEnum, SheetVisibleEnum

        for about in book.sheets_metadata:
            if about.typ != SheetTypeEnum.WorkSheet:
                loss = Loss("sheet without cells", "charts and macros are not read", about.name)
                yield "", Document("", "", losses=(loss,))
                continue
            try:
                sheet = self._sheet(book, about.name, marks.get(about.name, Marks()))
            except BaseException as error:
                if not _is_damage(error):
                    raise
                loss = Loss("corrupt sheet", f"cannot be read ({error})", about.name)
                sheet = Document("", "", losses=(loss,))
            if about.visible != SheetVisibleEnum.Visible and not self.hidden:
                loss = Loss("hidden sheet", _HOW_TO_READ, about.name, len(sheet.text))
                sheet = Document("", "", losses=(loss,) if sheet.text else ())
            yield "", sheet

    def _sheet(self, book: CalamineWorkbook, name: str, marks: Marks) -> Document:
        sheet = book.get_sheet_by_name(name)
        rows = _rows(sheet, marks)
        width = max(map(len, rows), default=0)
        hidden = (_numbers(marks.rows, len(rows)), _numbers(marks.columns, width))
        extracted = written(
            rows,
            self.header,
            lambda row: f"{name}!{row + 1}",
            lambda row, column: f"{name}!{letters(column)}{row + 1}",
            merged=marks.merged
            or [(*start, *end) for start, end in sheet.merged_cell_ranges or ()],
            hidden=NOTHING if self.hidden else hidden,
        )
        losses = [] if self.hidden else [*_hidden_cells(rows, hidden, name)]
        if marks.uncomputed:
            losses.append(Loss(*_UNCOMPUTED, name, count=marks.uncomputed))
        return replace(extracted, losses=(*losses,))


def _is_damage(error: BaseException) -> bool:
    """Returns whether calamine fails on a corrupt file, or panics."""
    from python_calamine import CalamineError

    # Rust's panics do not inherit from Exception.
    return isinstance(error, CalamineError) or type(error).__name__ == "PanicException"


def _rows(sheet: CalamineSheet, marks: Marks) -> list[list[str]]:
    """Returns the texts of a sheet's cells, from the first row and column."""
    above, before = sheet.start or (0, 0)
    cells = sheet.to_python(skip_empty_area=True)
    blank = [""] * before
    above_rows: list[list[str]] = [[]] * above
    rows = above_rows + [[*blank, *map(_text, row)] for row in cells]
    for (row, column), text in marks.texts.items():
        if row < len(rows) and column < len(rows[row]):
            rows[row][column] = text
    return rows


def _numbers(ranges: Iterable[range], end: int) -> set[int]:
    return {n for part in ranges for n in range(part.start, min(part.stop, end))}


def _hidden_cells(rows: list[list[str]], hidden: Hidden, name: str) -> Iterator[Loss]:
    shown = [row for n, row in enumerate(rows) if n not in hidden[0]] if hidden[1] else []
    columns = ["".join(chain(*(row[n : n + 1] for row in shown))) for n in hidden[1]]
    texts = {"hidden row": ["".join(rows[n]) for n in hidden[0]], "hidden column": columns}
    for what, lost in texts.items():
        if count := sum(map(bool, lost)):
            yield Loss(what, _HOW_TO_READ, name, sum(map(len, lost)), count)


def _text(value: object) -> str:
    """Returns the usual spelling of a cell's value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, datetime.timedelta):
        minutes, seconds = divmod(round(abs(value).total_seconds()), 60)
        sign = "-" if value < datetime.timedelta() else ""
        return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(value)


def _marks(archive: ZipFile, path: Path) -> Mapping[str, Marks]:
    if content := read(archive, "content.xml"):
        return ods.marks(content, path)
    if _BINARY in archive.namelist():
        raise UserError(f"{path}: is a binary workbook (xlsb), which is not read; save it as .xlsx")
    return xlsx.marks(archive, path)


def _lost(archive: ZipFile) -> Iterator[Loss]:
    names = archive.namelist()
    yield from losses_of(names, _EMBEDDED)
    if comments := read(archive, "content.xml").count(b"</office:annotation>"):
        yield Loss("comment", _NOT_READ, count=comments)
    for pattern, kind in _TEXTS.items():
        parts = (parsed(archive.read(name)) for name in names if re.fullmatch(pattern, name))
        elements = (e for part in parts for e in part.iter("{*}t", "{*}text"))
        if texts := [e.text for e in elements if e.text and e.text.strip()]:
            yield Loss(*kind, characters=sum(map(len, texts)), count=len(texts))
