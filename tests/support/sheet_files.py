"""Writers of spreadsheets with merged, hidden, formatted and faulty cells, in every format."""

import csv
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import openpyxl
import xlwt
from openpyxl.utils import get_column_letter
from stories import saved, zipped

Cell: TypeAlias = str | float | bool
ERRORS = {"#DIV/0!": 7, "#REF!": 23, "#N/A": 42}
_PARTS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"


@dataclass(frozen=True)
class Grid:
    """Cells of a sheet; merged cells are first row, first column, last row, last column.

    Texts such as `#N/A` are errors; `formats` are of cells by row and column.
    """

    rows: Sequence[Sequence[Cell]]
    merged: Collection[tuple[int, int, int, int]] = ()
    hidden_rows: Collection[int] = ()
    hidden_columns: Collection[int] = ()
    formats: Mapping[tuple[int, int], str] | None = None

    def format(self, row: int, column: int) -> str:
        """Returns the number format of a cell; empty without one."""
        return (self.formats or {}).get((row, column), "")


def grid(text: str, *merged: tuple[int, int, int, int]) -> Grid:
    """Returns the cells of a text with commas between values; figures become numbers."""
    return Grid([[_value(cell) for cell in row] for row in csv.reader(text.splitlines())], merged)


def _value(cell: str) -> Cell:
    return int(cell) if cell.isdecimal() and len(cell) < 4 else cell


def xlsx(cells: Grid) -> bytes:
    """Writes a workbook of Excel with one sheet, S."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "S"
    for i, row in enumerate(cells.rows, 1):
        for j, value in enumerate(row, 1):
            if value != "":
                cell = sheet.cell(i, j, value)
                cell.number_format = cells.format(i - 1, j - 1) or "General"
    for top, first, bottom, last in cells.merged:
        sheet.merge_cells(None, top + 1, first + 1, bottom + 1, last + 1)
    for number in cells.hidden_rows:
        sheet.row_dimensions[number + 1].hidden = True
    for column in cells.hidden_columns:
        sheet.column_dimensions[get_column_letter(column + 1)].hidden = True
    return saved(book)


def xls(cells: Grid) -> bytes:
    """Writes a workbook of Excel before 2007 with one sheet, S."""
    book = xlwt.Workbook()
    sheet = book.add_sheet("S")
    corners = {
        (top, first): (top, bottom, first, last) for top, first, bottom, last in cells.merged
    }
    for i, row in enumerate(cells.rows):
        for j, value in enumerate(row):
            if (i, j) in corners:
                sheet.write_merge(*corners[i, j], value)
            elif value in ERRORS:
                sheet.row(i).set_cell_error(j, ERRORS[str(value)])
            elif value != "":
                style = xlwt.easyxf(num_format_str=cells.format(i, j) or "General")
                sheet.write(i, j, value, style)
    for number in cells.hidden_rows:
        sheet.row(number).hidden = True
    for column in cells.hidden_columns:
        sheet.col(column).hidden = True
    return saved(book)


def ods(cells: Grid) -> bytes:
    """Writes a spreadsheet of LibreOffice with one sheet, S."""
    names = {
        kind: f"urn:oasis:names:tc:opendocument:xmlns:{kind}:1.0"
        for kind in ("office", "table", "text", "manifest")
    }
    spans = {
        (top, first): f' table:number-rows-spanned="{bottom - top + 1}"'
        f' table:number-columns-spanned="{last - first + 1}"'
        for top, first, bottom, last in cells.merged
    }
    width = max(map(len, cells.rows))
    columns = [_hidden(column in cells.hidden_columns, "collapse") for column in range(width)]
    body = "".join(f"<table:table-column{hidden}/>" for hidden in columns)
    for i, row in enumerate(cells.rows):
        body += f"<table:table-row{_hidden(i in cells.hidden_rows, 'filter')}>"
        for j, value in enumerate(row):
            attributes = _ods_value(value, cells.format(i, j)) + spans.get((i, j), "")
            text = str(value)
            if code := cells.format(i, j):
                text = f"{value:.1%}".replace(".0%", "%") if "%" in code else f"{value:g} EUR"
            body += f"<table:table-cell{attributes}><text:p>{text}</text:p></table:table-cell>"
        body += "</table:table-row>"
    spaces = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in names.items())
    content = (
        f'<office:document-content {spaces} xmlns:calcext="urn:x"><office:body>'
        f'<office:spreadsheet><table:table table:name="S">{body}'
        "</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'<manifest:manifest xmlns:manifest="{names["manifest"]}"><manifest:file-entry'
        f' manifest:full-path="/" manifest:media-type="{mimetype}"/></manifest:manifest>'
    )
    files = {"mimetype": mimetype, "content.xml": content, "META-INF/manifest.xml": manifest}
    return zipped(files)


def _hidden(is_hidden: bool, how: str) -> str:
    return f' table:visibility="{how}"' if is_hidden else ""


def _ods_value(value: Cell, code: str) -> str:
    if value == "":
        return ""
    if value in ERRORS:
        return ' office:value-type="string" office:string-value="" calcext:value-type="error"'
    if isinstance(value, bool):
        return f' office:value-type="boolean" office:boolean-value="{str(value).lower()}"'
    if isinstance(value, str):
        return ' office:value-type="string"'
    kind = "percentage" if "%" in code else "currency" if code else "float"
    currency = f' office:currency="{code.strip("0 ").strip(chr(34))}"' if kind == "currency" else ""
    return f' office:value-type="{kind}" office:value="{value}"{currency}'


def delimited(delimiter: str) -> Callable[[Grid], bytes]:
    """Returns a writer of text with a delimiter."""

    def write(cells: Grid) -> bytes:
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=delimiter).writerows(cells.rows)
        return buffer.getvalue().encode()

    return write


SHEETS: Mapping[str, Callable[[Grid], bytes]] = {
    ".xlsx": xlsx, ".xls": xls, ".ods": ods,
}  # fmt: skip
ALL: Mapping[str, Callable[[Grid], bytes]] = {
    **SHEETS, ".csv": delimited(","), ".tsv": delimited("\t"),
}  # fmt: skip
