"""Marks of the sheets of an xls file, a compound file with the records of Excel 97 to 2003."""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from itertools import chain
from pathlib import Path
from struct import Struct, error, unpack_from

from leporello.core.records import Loss
from leporello.loaders.tables.marks import ERRORS, PERCENT, Marks, check_size, has_unit

# Kinds of records.
_DEPTHS = {0x809: 1, 0x0A: -1}  # the begin and the end of a sheet or chart
_SIZE = 0x200
_BOOK = _LOCKED, _SHEET, _FORMAT, _STYLE = 0x2F, 0x85, 0x41E, 0xE0
_MARKS = _ROW, _COLUMNS, _OBJECT, _FORMULA, _ERROR = 0x208, 0x7D, 0x5D, 0x06, 0x205
_NUMBERS = _NUMBER, _SHORT, _SHORTS = 0x203, 0x27E, 0xBD
# Results of formulas; a formula without a result has that of an empty text.
_FIGURE, _FAILED, _EMPTY = -1, 2, 3
_OBJECTS = {
    5: ("chart", "only its cells are read"),
    6: ("text box", "texts drawn over cells are not read"),
    8: ("image", "images are not read"),
    25: ("comment", "comments on cells are not read"),
}
_NAME = "Workbook".encode("utf-16-le").rstrip(b"\0")
_MACROS = "_VBA_PROJECT_CUR".encode("utf-16-le")
_UNREAD = Loss(
    "marks of cells",
    "hidden rows, errors, comments and units of this old workbook are not read; save it as xlsx",
)


def marks(data: bytes, path: Path) -> tuple[dict[str, Marks], tuple[Loss, ...]]:
    """Returns the marks of the sheets by their names, and losses.

    Workbooks of Excel 95 and damaged ones have no marks, which is a loss. Raises UserError if a
    sheet has too many cells.
    """
    macros = (Loss("macro", "macros are not run"),) if _MACROS in data else ()
    try:
        return _marks(_workbook(data), path, macros)
    except (error, LookupError, UnicodeDecodeError):
        return {}, (_UNREAD, *macros)


def _marks(
    book: bytes, path: Path, losses: tuple[Loss, ...]
) -> tuple[dict[str, Marks], tuple[Loss, ...]]:
    codes: dict[int, str] = {int(kind): code for kind, code in PERCENT.items()}
    styles: list[int] = []
    starts: dict[str, int] = {}
    for kind, record in _records(book, 0, {*_BOOK}):
        if kind == _LOCKED:
            return {}, losses
        if kind == _FORMAT:
            codes[unpack_from("<H", record)[0]] = _text(record[5:], wide=record[4])
        elif kind == _STYLE:
            styles.append(unpack_from("<H", record, 2)[0])
        elif kind == _SHEET:
            starts[_text(record[8:], wide=record[7])] = unpack_from("<I", record)[0]
    formats = {n: codes[style] for n, style in enumerate(styles) if has_unit(codes.get(style, ""))}
    kinds = {*_MARKS, *(_NUMBERS if formats else ())}
    sheets = dict[str, Marks]()
    for name, start in starts.items():
        for _, record in _records(book, start, {_SIZE}):
            row, rows, column, columns = unpack_from("<2I2H", record)
            # calamine would take the memory, and end the process.
            check_size((rows - row) % 2**32 * ((columns - column) % 2**32), path)
        objects = Counter[int]()
        sheets[name] = _sheet(_records(book, start, kinds), formats, objects)
        losses += (
            *(Loss(*_OBJECTS[k], name, count=n) for k, n in objects.items() if k in _OBJECTS),
        )
    return sheets, losses


def _text(letters: bytes, *, wide: int) -> str:
    return letters.decode("utf-16-le" if wide & 1 else "latin-1")


def _sheet(
    records: Iterator[tuple[int, bytes]], formats: Mapping[int, str], objects: Counter[int]
) -> Marks:
    """Returns the marks of a sheet, and counts the objects on it by their kind."""
    marks = Marks()
    formulas: list[bool] = []  # whether each has no value
    for kind, record in records:
        first, second = unpack_from("<HH", record)  # of cells row and column
        if kind == _ROW:
            marks.rows += [range(first, first + 1)] if record[12] & 0x20 else []
        elif kind == _COLUMNS:
            marks.columns += [range(first, second + 1)] if record[8] & 1 else []
        elif kind == _OBJECT:
            objects[unpack_from("<H", record, 4)[0]] += 1
        else:
            for n in range((len(record) - 6) // 6 if kind == _SHORTS else 1):
                if code := formats.get(unpack_from("<H", record, 4 + 6 * n)[0]):
                    marks.formats[first, second + n] = code
        if kind == _ERROR and record[7]:
            marks.texts[first, second] = ERRORS.get(record[6], "#ERROR")
        elif kind == _FORMULA:
            result = record[6] if record[12:14] == b"\xff\xff" else _FIGURE
            formulas.append(result == _EMPTY)
            if result == _FAILED:
                marks.texts[first, second] = ERRORS.get(record[8], "#ERROR")
    marks.uncomputed = len(formulas) if all(formulas) else 0
    return marks


def _records(book: bytes, at: int, kinds: Set[int]) -> Iterator[tuple[int, bytes]]:
    """Yields records of some kinds of the globals or of a sheet, without those of its charts."""
    depth, head = 0, Struct("<HH").unpack_from
    while at + 4 <= len(book):
        kind, size = head(book, at)
        at += 4
        if kind in _DEPTHS:
            depth += _DEPTHS[kind]
            if depth == 0:
                return
        elif depth == 1 and kind in kinds:
            yield kind, book[at : at + size]
        at += size


def _workbook(data: bytes) -> bytes:
    """Returns the stream `Workbook` of a compound file.

    Raises struct.error or LookupError if the file is damaged, or older than Excel 97.
    """
    size = {9: 512, 12: 4096}[data[30]]
    sectors = [data[at : at + size] for at in range(size, len(data), size)]
    fat_sectors = [*unpack_from("<109I", data, 76)]
    further, count = unpack_from("<2I", data, 68)
    for _ in range(min(count, len(sectors))):
        *numbers, further = _numbers(sectors[further])
        fat_sectors += numbers
    fat = [*chain.from_iterable(_numbers(sectors[n]) for n in fat_sectors if n < len(sectors))]
    directory = _chained(sectors, fat, unpack_from("<I", data, 48)[0])
    entries = {
        directory[at : at + 64].rstrip(b"\0"): unpack_from("<2I", directory, at + 116)
        for at in range(0, len(directory), 128)
    }
    start, length = entries[_NAME]
    if length < unpack_from("<I", data, 56)[0]:  # a small stream is within another one
        inner = _chained(sectors, fat, unpack_from("<I", directory, 116)[0])
        fat = _numbers(_chained(sectors, fat, unpack_from("<I", data, 60)[0]))
        sectors = [inner[at : at + 64] for at in range(0, len(inner), 64)]
    return _chained(sectors, fat, start)[:length]


def _numbers(sector: bytes) -> list[int]:
    return [*unpack_from(f"<{len(sector) // 4}I", sector)]


def _chained(sectors: list[bytes], following: list[int], at: int) -> bytes:
    """Returns the content of a chain of sectors."""
    parts: list[bytes] = []
    while at < len(sectors) and len(parts) < len(sectors):
        parts.append(sectors[at])
        at = following[at]
    return b"".join(parts)
