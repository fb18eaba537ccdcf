"""Marks of the sheets of an xls file, from the records of its stream `Workbook` (BIFF8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from struct import error, unpack_from

from leporello.core.errors import UserError
from leporello.loaders.tables.marks import ERRORS, PERCENT, Marks, has_unit

_BOF, _EOF, _SHEET, _FORMAT, _STYLE = 0x809, 0x0A, 0x85, 0x41E, 0xE0
_LOCKED = 0x2F
_ROW, _COLUMNS, _NOTE, _TRUTH_OR_ERROR = 0x208, 0x7D, 0x1C, 0x205
_FORMULA, _MANY_NUMBERS = 0x06, 0xBD
_IS_ERROR, _IS_EMPTY = 2, 3  # values of formulas
_NUMBERS = {0x203, 0x27E, _FORMULA, _MANY_NUMBERS}
_SMALL = 4096  # bytes; smaller streams are in short sectors
_SHORT = 6  # binary logarithm of the size of a short sector


def marks(data: bytes, path: Path) -> dict[str, Marks]:
    """Returns the marks of the sheets by their names; empty for a corrupt or older file.

    Raises:
        UserError: The file is locked by a password.
    """
    try:
        stream = _workbook(data)
        if any(kind == _LOCKED for kind, _ in _records(stream, 0)):
            raise UserError(f"{path}: is locked by a password; save an open copy first")
        return dict(_sheets(stream)) if unpack_from("<H", stream, 4) == (0x600,) else {}
    except (error, IndexError, UnicodeDecodeError):
        return {}


def _sheets(stream: bytes) -> Iterator[tuple[str, Marks]]:
    codes = {int(number): code for number, code in PERCENT.items()}
    styles: list[int] = []
    starts: list[tuple[str, int]] = []
    for kind, record in _records(stream, 0):
        if kind == _FORMAT:
            length, is_wide = unpack_from("<HB", record, 2)
            codes[unpack_from("<H", record)[0]] = _text(record[5:], length, is_wide)
        elif kind == _STYLE:
            styles += unpack_from("<2xH", record)
        elif kind == _SHEET:
            start, length, is_wide = unpack_from("<I2xBB", record)
            starts.append((_text(record[8:], length, is_wide), start))
    units = {i: codes[n] for i, n in enumerate(styles) if n in codes and has_unit(codes[n])}
    yield from ((name, _marks(stream, start, units)) for name, start in starts)


def _marks(stream: bytes, start: int, units: Mapping[int, str]) -> Marks:
    marks = Marks()
    has_values = False  # in programs that compute nothing, all formulas are empty
    for kind, record in _records(stream, start):
        if kind == _ROW and record[12] & 0x20:
            row = unpack_from("<H", record)[0]
            marks.rows.append(range(row, row + 1))
        elif kind == _COLUMNS and record[8] & 1:
            first, last = unpack_from("<HH", record)
            marks.columns.append(range(first, last + 1))
        elif kind == _NOTE:
            marks.comments += 1
        elif kind == _TRUTH_OR_ERROR and record[7]:
            marks.texts[unpack_from("<HH", record)] = ERRORS.get(record[6], "#ERROR")
        elif kind == _FORMULA:
            value = record[6] if record[12:14] == b"\xff\xff" else None
            has_values |= value != _IS_EMPTY
            marks.uncomputed += 1
            if value == _IS_ERROR:
                marks.texts[unpack_from("<HH", record)] = ERRORS.get(record[8], "#ERROR")
        if units and kind in _NUMBERS:
            marks.formats |= _formats(kind, record, units)
    marks.uncomputed = 0 if has_values else marks.uncomputed
    return marks


def _formats(
    kind: int, record: bytes, units: Mapping[int, str]
) -> Iterator[tuple[tuple[int, int], str]]:
    """Yields row and column of numbers with units, and their formats."""
    row, first = unpack_from("<HH", record)
    last = len(record) - 6 if kind == _MANY_NUMBERS else 5  # six bytes a number
    for i, at in enumerate(range(4, last, 6)):
        (style,) = unpack_from("<H", record, at)
        if style in units:
            yield (row, first + i), units[style]


def _records(stream: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yields the records of a part of the stream, without parts within it, such as charts."""
    depth = 0
    while at + 4 <= len(stream):
        kind, length = unpack_from("<HH", stream, at)
        at += 4
        depth += (kind == _BOF) - (kind == _EOF)
        if depth == 1:
            yield kind, stream[at : at + length]
        elif depth < 1:
            return
        at += length


def _text(data: bytes, length: int, is_wide: int) -> str:
    return (
        data[: 2 * length].decode("utf-16-le") if is_wide & 1 else data[:length].decode("latin-1")
    )


def _workbook(data: bytes) -> bytes:
    """Returns the stream `Workbook` of a compound file; empty without it."""
    (shift,) = unpack_from("<H", data, 30)
    directory, short_table, more = unpack_from("<48xI8xI4xI", data)
    sectors = [*unpack_from("<109I", data, 76)]
    while more < len(data) >> shift:
        *numbers, more = _numbers(_sector(data, more, shift))
        sectors += numbers
        if len(sectors) > len(data) >> shift:
            break
    table = _numbers(b"".join(_sector(data, n, shift) for n in sectors if n < len(data) >> shift))
    entries = _chain(data, directory, table, shift)
    root_start = unpack_from("<I", entries, 116)[0]
    for at in range(128, len(entries) - 127, 128):
        name = entries[at : at + 64].decode("utf-16-le").rstrip("\0")
        start, size = unpack_from("<II", entries, at + 116)
        if name == "Workbook" and size >= _SMALL:
            return _chain(data, start, table, shift)[:size]
        if name == "Workbook":
            short = bytes(1 << _SHORT) + _chain(data, root_start, table, shift)
            short_sectors = _numbers(_chain(data, short_table, table, shift))
            return _chain(short, start, short_sectors, _SHORT)[:size]
    return b""


def _chain(data: bytes, start: int, table: Sequence[int], shift: int) -> bytes:
    """Returns a chain of sectors; the table has the next sector of each sector."""
    parts: list[bytes] = []
    while start < len(table) and len(parts) <= len(table):
        parts.append(_sector(data, start, shift))
        start = table[start]
    return b"".join(parts)


def _sector(data: bytes, number: int, shift: int) -> bytes:
    return data[(number + 1) << shift : (number + 2) << shift]


def _numbers(data: bytes) -> tuple[int, ...]:
    return unpack_from(f"<{len(data) // 4}I", data)
