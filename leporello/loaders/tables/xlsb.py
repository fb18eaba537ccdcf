"""Marks of the sheets of an xlsb file, from the records of its parts (BIFF12)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import error, unpack_from
from typing import TYPE_CHECKING

from leporello.core.errors import UserError
from leporello.loaders.office.archive import read
from leporello.loaders.tables.marks import ERRORS, Marks, check_size
from leporello.loaders.tables.xlsx import targets

if TYPE_CHECKING:
    from zipfile import ZipFile

_SHEET, _ROW, _COLUMNS, _MERGED = 156, 0, 60, 176
_ERRORS = (3, 11)  # values and formulas
_CELLS = range(1, 12)


def marks(archive: ZipFile, path: Path) -> dict[str, Marks]:
    """Returns the marks of the sheets by their names.

    Raises:
        UserError: The file is corrupt, or a sheet has too many cells.
    """
    parts = targets(archive, "workbook.bin")
    sheets: dict[str, Marks] = {}
    try:
        for kind, record in _records(read(archive, "xl/workbook.bin")):
            if kind == _SHEET:
                relation, end = _text(record, 8)
                name, _ = _text(record, end)
                sheets[name] = _marks(read(archive, parts.get(relation, "")), path)
    except (error, IndexError, UnicodeDecodeError):  # calamine might take all memory
        raise UserError(f"{path}: is corrupt; download it again") from None
    return sheets


def _marks(sheet: bytes, path: Path) -> Marks:
    marks, row, rows, width = Marks(), 0, set[int](), 0
    for kind, record in _records(sheet):
        if kind in _CELLS:
            rows.add(row)
            width = max(width, unpack_from("<I", record)[0] + 1)
        if kind == _ROW:
            (row,) = unpack_from("<I", record)
            marks.rows += [range(row, row + 1)] if record[11] & 0x10 else []
        elif kind == _COLUMNS and record[16] & 1:
            first, last = unpack_from("<II", record)
            marks.columns.append(range(first, last + 1))
        elif kind in _ERRORS:
            marks.texts[row, unpack_from("<I", record)[0]] = ERRORS.get(record[8], "#ERROR")
        elif kind == _MERGED:
            top, bottom, first, last = unpack_from("<4I", record)
            marks.merged.append((top, first, bottom, last))
    check_size((max(rows) - min(rows) + 1) * width if rows else 0, path)
    return marks


def _records(part: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(part):
        kind, at = _number(part, at)
        length, at = _number(part, at)
        yield kind, part[at : at + length]
        at += length


def _number(part: bytes, at: int) -> tuple[int, int]:
    """Returns a number of up to four bytes, seven bits in each, and where it ends."""
    number = 0
    for shift in range(0, 28, 7):
        byte = part[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 -- the highest bit
            break
    return number, at


def _text(record: bytes, at: int) -> tuple[str, int]:
    end = at + 4 + 2 * unpack_from("<I", record, at)[0]
    return record[at + 4 : end].decode("utf-16-le"), end
