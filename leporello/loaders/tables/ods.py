"""Marks of the sheets of an ods file."""

import html
import re
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate

from leporello.core.errors import UserError
from leporello.loaders.tables.marks import Marks, check_size

_REPEATED = re.compile(
    rb'<table:table-cell (?=[^<>]*office:value)[^<>]*?columns-repeated="(\d{1,18})"'
)
# Attributes without which a sheet has no marks.
_MARKED = re.compile(
    rb'-spanned="(?!1")|:visibility="[cf]|value-type="(?:error|percentage|currency|time)"|:formula='
)
_TABLE = re.compile(rb'<table:table [^<>]*?table:name="([^"<>]*)"')
_ELEMENT = re.compile(rb"<table:(table-column|table-row|table-cell|covered-table-cell)\b([^<>]*+)>")
_ATTRIBUTE = re.compile(rb'\s([\w-]++:[\w-]++)="([^"<>]*+)"')
_SHOWN = re.compile(rb"\s*+<text:p[^<>]*+>([^<]*+)")
_AS_SHOWN = (b"percentage", b"currency", b"time")  # types whose values calamine gives without unit
_MOST_REPEATED = 1000  # cells of one element whose marks are kept
_HIDDEN = (b"collapse", b"filter")


def marks(content: bytes, path: Path) -> dict[str, Marks]:
    """Returns the marks of sheets by name; raises UserError for corrupt XML or too many cells."""
    try:
        ParserCreate().Parse(content, True)
    except ExpatError as error:  # calamine would never return
        raise UserError(f"{path}: is corrupt ({error})") from None
    check_size(sum(map(int, _REPEATED.findall(content))), path)
    _, *sheets = _TABLE.split(content)
    names = [html.unescape(name.decode()) for name in sheets[::2]]
    return dict(zip(names, map(_marks, sheets[1::2]), strict=True))


def _marks(sheet: bytes) -> Marks:
    marks = Marks()
    row = next_row = column = columns = 0
    for element in _ELEMENT.finditer(sheet) if _MARKED.search(sheet) else ():
        kind = element[1]
        has = dict(_ATTRIBUTE.findall(element[2]))
        is_hidden = has.get(b"table:visibility") in _HIDDEN
        if kind == b"table-column":
            last = columns + int(has.get(b"table:number-columns-repeated", 1))
            marks.columns += [range(columns, last)] if is_hidden else []
            columns = last
        elif kind == b"table-row":
            row, column = next_row, 0
            next_row += int(has.get(b"table:number-rows-repeated", 1))
            marks.rows += [range(row, next_row)] if is_hidden else []
        else:
            after = column + int(has.get(b"table:number-columns-repeated", 1))
            if len(has) > 0 and kind == b"table-cell":
                _mark(marks, row, range(column, after), has, _SHOWN.match(sheet, element.end()))
            column = after
    return marks


def _mark(
    marks: Marks, row: int, columns: range, has: dict[bytes, bytes], shown: re.Match[bytes] | None
) -> None:
    """Adds the marks of a cell to those of its sheet."""
    last_row = row + int(has.get(b"table:number-rows-spanned", 1)) - 1
    last_column = columns.stop + int(has.get(b"table:number-columns-spanned", 1)) - 2
    if last_row > row or last_column >= columns.stop:
        marks.merged.append((row, columns.start, last_row, last_column))
    kind = has.get(b"office:value-type", b"")
    text = html.unescape(shown[1].decode()) if shown else ""
    if b"table:formula" in has and not kind and not text:
        marks.uncomputed += 1
    if kind in _AS_SHOWN or has.get(b"calcext:value-type") == b"error":
        marks.texts |= {(row, column): text for column in columns[:_MOST_REPEATED]}
