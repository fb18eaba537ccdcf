"""Rows and cells of Word's tables, and what they cover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from leporello.loaders.numbering import whole
from leporello.loaders.office.parts import attribute, elements

if TYPE_CHECKING:
    from lxml.etree import _Element


def inside(parent: _Element, name: str) -> Iterator[_Element]:
    """Yields rows or cells, also those in content controls and tracked insertions."""
    for kind, element in elements(parent):
        if kind == name:
            yield element
        elif kind not in ("tbl", "p", "tr", "tc"):
            yield from inside(element, name)


def columns_before(row: _Element) -> int:
    """Returns the number of columns that a row leaves free at its beginning."""
    return whole(attribute(row.find("{*}trPr/{*}gridBefore")))


def columns_of(cell: _Element) -> int:
    """Returns the number of columns that a cell covers."""
    return max(whole(attribute(cell.find("{*}tcPr/{*}gridSpan")), 1), 1)


def row_spans(rows: list[_Element]) -> Mapping[_Element, int]:
    """Returns the number of rows of each cell; cells that continue one above are left out."""
    spans: dict[_Element, int] = {}
    above: dict[int, _Element] = {}  # the cell that began a merge, by column
    for row in rows:
        column, merged = columns_before(row), above
        above = {}
        for cell in inside(row, "tc"):
            merge = cell.find("{*}tcPr/{*}vMerge")
            begun = merged.get(column)
            if merge is not None and attribute(merge) != "restart" and begun is not None:
                spans[begun] += 1
                above[column] = begun
            else:
                spans[cell] = 1
                if merge is not None:
                    above[column] = cell
            column += columns_of(cell)
    return spans
