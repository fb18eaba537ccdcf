"""Marks of the sheets of an xlsx file."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from zipfile import ZipFile

from leporello.loaders.office.archive import parsed, read
from leporello.loaders.office.parts import OfficeParts
from leporello.loaders.tables.marks import (
    MOST_CELLS,
    PERCENT,
    Marks,
    check_size,
    formatted,
    has_unit,
)

_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PREFIX = re.compile(rb"<(\w+):worksheet[\s>]")
_CELL = re.compile(rb'<c [^<>]*?r="([A-Z]{1,3})(\d{1,7})"')
_VALUE = rb"([^<>]*+)>\s*+(?:<f[^<]*+(?:</f>)?+)?+\s*+<v>([^<]*+)</v>"
_ERROR = re.compile(rb'<c (?=[^<>]*\bt="e")' + _VALUE)
_ZERO = re.compile(rb"<c ([^<>]*+)>\s*+<f[^<]*+(?:</f>)?+\s*+<v>(0)</v>")
_NO_VALUE = re.compile(rb"<c [^<>]*+>\s*+<f[^<]*+(?:</f>)?+\s*+(?:<v>\s*+</v>|<v\s*+/>)?+\s*+</c>")
_HIDDEN = re.compile(rb'<(row|col) (?=[^<>]*\bhidden="(?:1|true)")([^<>]*+)>')
_AT = re.compile(rb'\br="([A-Z]{1,3})(\d{1,7})"')
_NUMBERS = re.compile(rb'\b(r|min|max)="(\d{1,7})"')
_STYLE = re.compile(rb'\bs="(\d{1,9})"')
_NO_NUMBER = re.compile(rb'\bt="[^n]')


def marks(archive: ZipFile, path: Path) -> dict[str, Marks]:
    """Returns the marks of the sheets by their names; raises UserError for too many cells."""
    book = read(archive, "xl/workbook.xml")
    parts = OfficeParts(archive).targets("xl/workbook.xml")
    formats = _formats(read(archive, "xl/styles.xml"))
    zeros = b'fullCalcOnLoad="1"' in book  # written by a program that computes nothing
    sheets = {}
    for about in parsed(book).iter("{*}sheet"):
        sheet = read(archive, parts.get(about.get(_RELATION, ""), ("", ""))[1])
        if prefix := _PREFIX.search(sheet[:2000]):
            sheet = re.sub(rb"<(/?)%b:" % prefix[1], rb"<\1", sheet)
        _check_size(sheet, path)
        sheets[about.get("name", "")] = _marks(sheet, formats, zeros=zeros)
    return sheets


@lru_cache(20_000)
def _column(letters: bytes) -> int:
    """Returns the number of a column, from 0, by its letters."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number - 1


def _marks(sheet: bytes, formats: Mapping[bytes, str], *, zeros: bool) -> Marks:
    """Returns the marks of a sheet.

    With `zeros`, formulas with the value 0 were never computed.
    """
    marks = Marks(uncomputed=len(_NO_VALUE.findall(sheet)) if b"<f" in sheet else 0)
    for kind, attributes in _HIDDEN.findall(sheet) if b"hidden=" in sheet else ():
        numbers = [int(number) for name, number in _NUMBERS.findall(attributes)]
        if numbers:
            hidden = marks.rows if kind == b"row" else marks.columns
            hidden.append(range(min(numbers) - 1, max(numbers)))
    if b't="e"' in sheet:
        marks.texts |= {at: value.decode() for at, _, value in _cells(sheet, _ERROR)}
    if zeros:
        marks.texts |= (uncomputed := {at: "" for at, *_ in _cells(sheet, _ZERO)})
        marks.uncomputed += len(uncomputed)
    if formats:
        pattern = re.compile(rb'<c (?=[^<>]*\bs="(?:%b)")' % b"|".join(formats) + _VALUE)
        for at, attributes, value in _cells(sheet, pattern):
            if (style := _STYLE.search(attributes)) and not _NO_NUMBER.search(attributes):
                marks.texts[at] = formatted(float(value), formats[style[1]])
    return marks


def _cells(
    sheet: bytes, pattern: re.Pattern[bytes]
) -> Iterator[tuple[tuple[int, int], bytes, bytes]]:
    """Yields row and column, attributes and value of the cells that a pattern matches."""
    for attributes, value in pattern.findall(sheet):
        if at := _AT.search(attributes):
            yield (int(at[2]) - 1, _column(at[1])), attributes, value


def _formats(styles: bytes) -> dict[bytes, str]:
    """Returns the number formats with units, by the number of their style."""
    root = parsed(styles)
    codes = {f.get("numFmtId", ""): f.get("formatCode", "") for f in root.iter("{*}numFmt")}
    kinds = [xf.get("numFmtId", "") for table in root.iter("{*}cellXfs") for xf in table]
    return {
        b"%d" % i: code
        for i, kind in enumerate(kinds)
        if has_unit(code := codes.get(kind, PERCENT.get(kind, "")))
    }


def _check_size(sheet: bytes, path: Path) -> None:
    """Refuses a sheet whose rectangle of cells would fill the memory."""
    last = max((int(n) for n in re.findall(rb'<row [^<>]*?r="(\d{1,7})"', sheet)), default=0)
    wide = 16_384 if re.search(rb'<c [^<>]*?r="[A-Z]{3}\d', sheet) else 702
    cells = last * wide
    if cells > MOST_CELLS:
        corners = [(_column(m[1]), int(m[2])) for m in _CELL.finditer(sheet)]
        rows = [row for _, row in corners]
        cells = (max(corners)[0] + 1) * (max(rows) - min(rows) + 1)
    check_size(cells, path)
