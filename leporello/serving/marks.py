"""Finds emphasis, hidden marks and cells in the blocks of a text."""

import re
from collections.abc import Iterator, Sequence

from leporello.serving.blocks import LINE, MARKER, PIPES, QUOTE, Block

Ranges = list[tuple[int, int, str]]

_INLINE = re.compile(
    r"(?<!\\)(?:(?P<code>(?<!`)`++)(?P<of_code>.{1,500}?)(?<!`)(?P=code)(?!`)"
    r"|(?P<strong>\*\*|(?<!\w)__)(?=[^\s*_])(?P<of_strong>.{1,500}?)(?<=[^\s\\])(?P=strong)"
    r"|(?P<em>(?<!\*)\*(?!\*)|(?<!\w)_(?!_))(?=\S)(?P<of_em>.{1,500}?)(?<=[^\s\\])(?P=em)(?![*\w])"
    r"|(?P<link>!?\[)(?P<of_link>[^\[\]\n]{1,300})\]\([^()\s]{0,500}(?: \"[^\"\n]{0,200}\")?\)"
    r"|(?P<break>(?<! ) {2,}+\n))",
    re.S,
)
_PIPED_CELL = re.compile(r"(?:\\.|[^|\n\\]|\\(?=\n|\Z))+")
_TABBED_CELL = re.compile(r"[^\t\n]+|(?<=\t)(?=\t)")
# Marks that are not shown.
_MARKS = {
    "item": re.compile(rf"^(?:{MARKER.pattern})", re.M),
    "quote": re.compile(rf"^{QUOTE.pattern}", re.M),
    "rule": re.compile(r".+"),
    "code": re.compile(r"^ {0,3}(?:`{3,}[^`\n]*|~{3,}[^\n]*)(?:\n|\Z)", re.M),
    "heading": re.compile(
        r"^ {0,3}#{1,6}[ \t]*|(?<![ \t])[ \t]++#++[ \t]*\Z|\n {0,3}(?:=+|-+)[ \t]*\Z", re.M
    ),
}


def ranges(text: str, block: Block) -> Ranges:
    """Returns (start, end, kind) of marks and emphasis: `syntax` is not shown."""
    marked: Ranges = []
    if block.kind in _MARKS and (block.markdown or block.kind in ("item", "heading")):
        marks = _MARKS[block.kind].finditer(text, block.start, block.end)
        marked += ((*mark.span(), "syntax") for mark in marks)
    if block.kind == "table":
        marked += (mark for row in cells(text, block) for mark in _prefixes(text, block, row))
    if block.markdown and block.kind != "code":
        marked += _inline(text, block.start, block.end)
    return marked


def cells(text: str, block: Block) -> list[list[tuple[int, int, int]]]:
    """Returns (start, end, column) of the cells of each row of a table."""
    pattern = _PIPED_CELL if block.markdown else _TABBED_CELL
    rows = []
    for line in LINE.finditer(text, block.start, block.end):
        if block.markdown and PIPES.match(line[0].rstrip()):
            continue
        row = []
        for column, cell in enumerate(_stripped(line, pattern, markdown=block.markdown)):
            start, end = cell
            name = text[start:end].partition(": ")[0]
            row.append(
                (start, end, block.names.index(name) if name in block.names[column:] else column)
            )
        rows.append(row)
    return rows


def separators(text: str, block: Block) -> Ranges:
    """Returns the ranges between cells (`gap`) and rows (`newline`), and a table's emphasis."""
    between, at, kind = Ranges(), block.start, "syntax"
    for row in cells(text, block):
        for start, end, _ in row:
            between.append((at, start, kind))
            at, kind = end, "gap"
        kind = "newline"
    inline = _inline(text, block.start, block.end) if block.markdown else []
    return [*between, (at, block.end, "syntax"), *inline]


def _stripped(
    line: re.Match[str], pattern: re.Pattern[str], *, markdown: bool
) -> Iterator[tuple[int, int]]:
    for cell in pattern.finditer(line.string, line.start(), line.end()):
        body = cell[0].strip()
        if body or not markdown:
            start = cell.start() + len(cell[0]) - len(cell[0].lstrip())
            yield start, start + len(body)


def _prefixes(text: str, block: Block, row: Sequence[tuple[int, int, int]]) -> Ranges:
    names = block.names
    return [
        (start, start + len(names[column]) + 2, "syntax")
        for start, end, column in row
        if column < len(names) and text.startswith(f"{names[column]}: ", start, end)
    ]


def _inline(text: str, start: int, end: int) -> Ranges:
    marked: Ranges = []
    for match in _INLINE.finditer(text, start, end):
        kind = next(k for k in ("code", "strong", "em", "link", "break") if match[k] is not None)
        if kind == "break":
            marked.append((*match.span(), kind))
            continue
        inner = match.span(f"of_{kind}")
        marked += [(match.start(), inner[0], "syntax"), (inner[1], match.end(), "syntax")]
        marked.append((*inner, kind))
        if kind != "code":
            marked += _inline(text, *inner)
    return marked
