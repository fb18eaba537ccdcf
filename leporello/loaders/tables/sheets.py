"""Spreadsheets: the last computed values of cells, sheet by sheet."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from leporello.core.errors import UserError
from leporello.core.records import Loss
from leporello.loaders.files import ZIP, Format
from leporello.loaders.office.archive import losses_of, members, parsed, unpacked
from leporello.loaders.office.docx import title_of
from leporello.loaders.tables.rows import Header, letters, written
from leporello.text.outline import Extracted, joined

if TYPE_CHECKING:
    from zipfile import ZipFile

    from python_calamine import CalamineWorkbook

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BOOKS = ("Workbook".encode("utf-16-le"), "Book".encode("utf-16-le"))
_MARKS = {"xl/workbook.xml", "xl/workbook.bin"}
_SPREADSHEET = b"application/vnd.oasis.opendocument.spreadsheet"
_MOST_CELLS = 40_000_000  # of a sheet's rectangle; even an empty cell takes 24 bytes
_CELL = re.compile(rb'<c [^<>]*?r="([A-Z]{1,3})(\d{1,7})"')
_NO_VALUE = re.compile(rb"<c [^<>]*+>\s*+<f[^<]*+</f>\s*+(?:<v>\s*+</v>|<v\s*+/>)?+\s*+</c>")
_REPEATED = re.compile(
    rb'<table:table-cell (?=[^<>]*office:value)[^<>]*?columns-repeated="(\d{1,18})"'
)
_EMBEDDED = {
    r"(xl/charts/chart\d|Object \d+/content.xml)": ("chart", "only its cells are read"),
    r"(xl/media|Pictures)/": ("image", "images are not read"),
    r"xl/embeddings/": ("embedded object", "is not read; save it as a separate file"),
    r"xl/(pivotTables)/": ("pivot table", "only its visible cells are read"),
    r"(xl/vbaProject|Basic/.*\.xml|Scripts/)": ("macro", "macros are not run"),
}
_TEXTS = {
    r"xl/(threadedC|c)omments.*\.xml": ("comment", "comments on cells are not read"),
    r"xl/drawings/drawing\d*\.xml": ("text box", "texts drawn over cells are not read"),
}


@dataclass(frozen=True)
class Sheets(Format):
    """Spreadsheets (xlsx, xls, xlsb, ods): one line per row, with column names.

    Attributes:
        header: Whether a row names the columns, so that each cell is written as `Name: value`:
            detected (`auto`), the first row (`first`), or no row (`none`).
        hidden: Whether hidden sheets are read too; they are losses otherwise.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".xlsx", ".xlsm", ".xltx", ".xls", ".xlsb", ".ods")
    begins: ClassVar[re.Pattern[bytes]] = re.compile(ZIP.pattern + b"|" + re.escape(_OLE))
    marked: ClassVar[bool] = True

    header: Header = "auto"
    hidden: bool = False

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content suffices
        """Returns whether the file is a workbook of Excel or LibreOffice."""
        if head.startswith(_OLE):
            return any(mark in head for mark in _BOOKS)
        return bool(_MARKS & (names := members(head))) or (
            bool(names) and _SPREADSHEET in head[:200]
        )

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the rows of all sheets; places have the names of cells, `Costs!B7`.

        Raises:
            UserError: The file is corrupt or locked, or has too many cells.
        """
        from python_calamine import CalamineError, PasswordError, load_workbook

        losses: tuple[Loss, ...] = ()
        title = ""
        if not data.startswith(_OLE):
            with unpacked(data, path) as archive:
                losses, title = (*_lost(archive, path),), title_of(archive)
        try:
            with load_workbook(BytesIO(data)) as book:
                sheets = joined(self._sheets(book))
        except PasswordError:
            raise UserError(f"{path}: is locked by a password; save an open copy first") from None
        except CalamineError as error:
            raise UserError(f"{path}: is corrupt, or locked by a password ({error})") from None
        except BaseException as error:
            if (
                type(error).__name__ == "PanicException"
            ):  # Rust's, which does not inherit from Exception
                raise UserError(f"{path}: is not a spreadsheet, or is corrupt ({error})") from None
            raise
        return replace(sheets, title=title, losses=(*sheets.losses, *losses))

    def _sheets(self, book: CalamineWorkbook) -> Iterator[tuple[str, Extracted]]:
        from python_calamine import SheetTypeEnum, SheetVisibleEnum

        for about in book.sheets_metadata:
            if about.typ != SheetTypeEnum.WorkSheet:
                loss = Loss("sheet without cells", "charts and macros are not read", about.name)
                yield "", Extracted("", losses=(loss,))
                continue
            sheet = self._sheet(book, about.name)
            if about.visible != SheetVisibleEnum.Visible and not self.hidden:
                why = "the loader {class: Sheets, hidden: true} reads it"
                loss = Loss("hidden sheet", why, about.name, len(sheet.text))
                sheet = Extracted("", losses=(loss,) if sheet.text else ())
            yield "", sheet

    def _sheet(self, book: CalamineWorkbook, name: str) -> Extracted:
        sheet = book.get_sheet_by_name(name)
        first_row, first_column = sheet.start or (0, 0)
        rows = ([*map(_text, row)] for row in sheet.to_python(skip_empty_area=True))
        merged = (
            (top - first_row, left - first_column, bottom - first_row, right - first_column)
            for (top, left), (bottom, right) in sheet.merged_cell_ranges or ()
        )
        return written(
            rows,
            self.header,
            lambda row: f"{name}!{row + first_row + 1}",
            lambda row, column: f"{name}!{letters(column + first_column)}{row + first_row + 1}",
            merged,
        )


def _text(value: object) -> str:
    """Returns the usual spelling of a cell's value."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}" if value % 1 else f"{value:.0f}"  # 0.1 + 0.2 is 0.3 to Excel
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return str(value)


def _lost(archive: ZipFile, path: Path) -> Iterator[Loss]:
    names = archive.namelist()
    for name in names:
        if name == "content.xml" or (
            name.startswith("xl/worksheets/sheet") and name.endswith("xml")
        ):
            sheet = archive.read(name)
            _check_size(sheet, path)
            if count := len(_NO_VALUE.findall(sheet)):
                why = "was never computed; open the file in a spreadsheet program and save it"
                yield Loss("formula without a value", why, count=count)
    yield from losses_of(names, _EMBEDDED)
    for pattern, kind in _TEXTS.items():
        texts = [t for n in names if re.fullmatch(pattern, n) for t in _texts(archive.read(n))]
        if texts:
            yield Loss(*kind, characters=sum(map(len, texts)), count=len(texts))


def _texts(data: bytes) -> Iterable[str]:
    """Returns the texts in an Office part."""
    elements = parsed(data).iter("{*}t", "{*}text")
    return (e.text for e in elements if e.text and e.text.strip())


def _check_size(sheet: bytes, path: Path) -> None:
    """Refuses a sheet whose rectangle of cells would fill the memory."""
    last = max((int(n) for n in re.findall(rb'<row [^<>]*?r="(\d{1,7})"', sheet)), default=0)
    wide = 16_384 if re.search(rb'<c [^<>]*?r="[A-Z]{3}\d', sheet) else 702
    cells = last * wide
    if cells > _MOST_CELLS:
        corners = [(len(m[1]), m[1], int(m[2])) for m in _CELL.finditer(sheet)]
        columns = sum(
            (ord(c) - 64) * 26**i for i, c in enumerate(reversed(max(corners)[1].decode()))
        )
        cells = columns * (max(c[2] for c in corners) - min(c[2] for c in corners) + 1)
    repeated = sum(map(int, _REPEATED.findall(sheet)))
    if max(cells, repeated) > _MOST_CELLS:
        raise UserError(f"{path}: has a sheet of {max(cells, repeated):,} cells, too many")
