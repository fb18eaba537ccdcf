"""Compares the text of loaders with pandoc's: cells of tables, numbers of lists, formulas, words.

    python -m benchmarks.against_pandoc FOLDER           # docx, odt, html, epub, rtf and JATS
    python -m benchmarks.against_pandoc FOLDER --show    # and each difference

`pandoc` must be installed. The right rows of other files are read from a file that is named
like `a.pdf.rows`, with tabs between cells. Figures are shares of these parts that the text
of the loader contains.
A cell counts if the same row and column of the text contain it, a number if it precedes the words
of its item. Differences are to be read: pandoc loses text, too.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from leporello.core.errors import UserError
from leporello.loaders.files import load
from leporello.loaders.numbering import numeral

FORMATS = {
    ".docx": "docx", ".odt": "odt", ".html": "html", ".xhtml": "html", ".epub": "epub",
    ".rtf": "rtf", ".nxml": "jats", ".xml": "jats",
}  # fmt: skip
NUMERALS = {
    "LowerAlpha": "a", "UpperAlpha": "A", "LowerRoman": "i", "UpperRoman": "I",
}  # fmt: skip
WORD = re.compile(r"\w+")
Node: TypeAlias = Any  # a list, mapping or text of pandoc's tree
BREAKS = ("Para", "Plain", "Header", "CodeBlock", "LineBlock", "HorizontalRule", "Div", "Note")
SPACES = ("Space", "SoftBreak", "LineBreak", "Math", "RawInline")


@dataclass
class Parts:
    """Parts of a document by pandoc.

    Attributes:
        words: Words outside of formulas.
        formulas: Letters and digits of each formula.
        numbers: Last numeral of each list item's number, and the item's first words.
        tables: Texts of cells by row and column.
    """

    words: list[str] = field(default_factory=list)
    formulas: list[str] = field(default_factory=list)
    numbers: list[tuple[str, list[str]]] = field(default_factory=list)
    tables: list[list[dict[int, str]]] = field(default_factory=list)

    def add(self, blocks: list[Any]) -> None:
        """Adds the parts of some blocks."""
        self.words += words(text(blocks))
        inner: set[int] = set()
        for node in nodes(blocks):
            kind, content = node["t"], node.get("c", [])
            if kind == "Math":
                self.formulas.append(letters(content[1]))
            elif kind == "OrderedList":
                if 2 * sum(is_link(item) for item in content[1]) > len(content[1]):  # contents
                    continue
                for label, item in labelled(content):
                    self.numbers.append((label, words(text(item[:1]))[:4]))
            elif kind == "Table" and id(node) not in inner:
                self.tables.append(grid(content))
                inner |= {id(n) for n in nodes(content)}  # a table in a cell is its text


def labelled(ordered: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yields the number of each item of a list, in lower case, and the item."""
    (start, style, _), items = ordered
    for number, item in enumerate(items, start):
        yield numeral(number, NUMERALS.get(style["t"], "1")).lower(), item


def is_link(blocks: list[Any]) -> bool:
    """Returns whether all text of some blocks is in links."""
    links = [node["c"][1] for node in nodes(blocks) if node["t"] == "Link"]
    return bool(links) and words(text(links)) == words(text(blocks))


def nodes(part: Node) -> Iterator[dict[str, Node]]:
    """Yields the nodes of pandoc's tree."""
    if isinstance(part, list):
        for inner in part:
            yield from nodes(inner)
    elif isinstance(part, dict):
        yield from [part] if "t" in part else []
        yield from nodes([*part.values()])


def text(part: Node, *, is_cell: bool = False) -> str:
    """Returns the text of a part of pandoc's tree, in cells with formulas and list numbers."""
    if isinstance(part, list):
        return "".join(text(inner, is_cell=is_cell) for inner in part)
    if not isinstance(part, dict):
        return ""
    kind, content = part.get("t", ""), part.get("c", "")
    if kind in ("Str", "Code", "CodeBlock"):
        written = content if kind == "Str" else content[1]
        return f"{written}\n" if kind == "CodeBlock" else str(written)
    if kind in ("Math", "OrderedList") and is_cell:
        items = labelled(content) if kind == "OrderedList" else ()
        listed = "".join(f"{label} {text(item, is_cell=True)}" for label, item in items)
        return listed or letters(content[1])
    written = text(content, is_cell=is_cell)
    if kind == "Superscript" and written[:1].isdigit():
        return f"^{written}"
    return f"\n{written}\n" if kind in BREAKS else written or " " * (kind in SPACES)


def words(written: str) -> list[str]:
    """Returns the words of a text, with equal letters for equal signs."""
    plain = unicodedata.normalize("NFKC", written).replace("\N{SOFT HYPHEN}", "")
    return WORD.findall(plain.lower())


def letters(source: str) -> str:
    """Returns the letters and digits of a formula in LaTeX."""

    def sign(match: re.Match[str]) -> str:
        name = match[1].removeprefix("var")
        case = "CAPITAL" if name[:1].isupper() else "SMALL"
        try:
            return unicodedata.lookup(f"GREEK {case} LETTER {name.upper()}")
        except KeyError:
            return name if name in ("sin", "cos", "log", "exp", "lim", "max", "min") else ""

    source = re.sub(r"\\(?:begin|end|operatorname)\{\w+\*?\}(?:\{[clr]+\})?", "", source)
    return squeezed(re.sub(r"\\([a-zA-Z]+)", sign, source))


def squeezed(written: str) -> str:
    """Returns the letters and digits of a text."""
    return "".join(words(written)).replace("_", "")


def grid(table: list[Any]) -> list[dict[int, str]]:
    """Returns the words of each cell, by column of each row, without columns of no cell."""
    _, _, _, head, bodies, foot = table
    groups = [head[1], *(rows for body in bodies for rows in body[2:4]), foot[1]]
    rows: list[dict[int, str]] = []
    for group in groups:
        covered: dict[int, int] = {}  # rows that are left, by column
        for _, cells in group:
            row, column = {}, 0
            for _, _, below, across, blocks in cells:
                while covered.get(column, 0) > 0:
                    column += 1
                row[column] = squeezed(text(blocks, is_cell=True))
                for number in range(column, column + across):
                    covered[number] = below
                column += across
            covered = {number: below - 1 for number, below in covered.items()}
            rows.append(row)
    columns = sorted({column for row in rows for column in row})
    return [{columns.index(c): cell for c, cell in row.items()} for row in rows]


@dataclass
class Figures:
    """Counts of parts and of those that the text contains, by kind; and the differences."""

    matched: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def count(self, kind: str, is_found: bool, what: str) -> None:
        """Counts a part."""
        self.parts[kind] += 1
        self.matched[kind] += is_found
        if not is_found:
            self.differences.append(f"    {kind}: {what}")


def compare(parts: Parts, written: str) -> Figures:
    """Returns how many of pandoc's parts the text of a loader contains."""
    figures = Figures()
    present = Counter(words(written))
    for word, number in Counter(parts.words).items():
        for i in range(number):
            figures.count("words", i < present[word], word)
    plain = squeezed(written)
    for formula in filter(None, parts.formulas):
        figures.count("formulas", formula in plain, formula)
    sequence = f" {' '.join(words(written))} "
    for label, item in parts.numbers:
        if item:
            is_found = f" {label} {' '.join(item)} " in sequence
            figures.count("list numbers", is_found, f"{label} {' '.join(item)}")
    rows = [[squeezed(cell) for cell in line.split("\t")] for line in written.split("\n")]
    for table in parts.tables:
        compare_table(table, rows, figures)
    missing = present - Counter(parts.words)
    extra = [f"{word}*{count}" for word, count in missing.most_common() if not word.isdigit()]
    figures.differences += [f"    only in ours: {' '.join(extra[:60])}"] if extra else []
    return figures


def compare_table(table: list[dict[int, str]], rows: list[list[str]], figures: Figures) -> None:
    """Counts the cells of a table that are in their column of the row that fits best."""

    def is_found(row: list[str], column: int, cell: str) -> bool:
        return column < len(row) and (
            row[column] == cell or (len(cell) > 2 and cell in row[column])
        )

    if max((column for row in table for column in row), default=0) == 0:
        return  # of one column: paragraphs
    for row in table:
        cells = {column: cell for column, cell in row.items() if cell}
        fit = [[is_found(line, *cell) for cell in cells.items()] for line in rows]
        best = max(fit, key=sum, default=[False] * len(cells)) if cells else []
        for (column, cell), is_right in zip(cells.items(), best, strict=True):
            figures.count(
                "cells", is_right, f"column {column} {cell[:50]}: {[*cells.values()]}"[:200]
            )


def parts_of(path: Path) -> Parts | None:
    """Returns the parts of a file by hand or by pandoc; None if pandoc refuses it."""
    by_hand = path.with_name(f"{path.name}.rows")
    if by_hand.exists():
        lines = by_hand.read_text().splitlines()
        rows = [dict(enumerate(map(squeezed, line.split("\t")))) for line in lines]
        return Parts(tables=[rows])
    kind = FORMATS[path.suffix.lower()]
    command = ["pandoc", "-f", kind, "-t", "json", str(path)]
    process = subprocess.run(command, check=False, capture_output=True)  # noqa: S603 -- the user's pandoc
    if process.returncode:
        return None
    parts = Parts()
    parts.add(json.loads(process.stdout)["blocks"])
    return parts


def main() -> None:
    """Prints the figures of each file and of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="folder of files")
    parser.add_argument("--show", action="store_true", help="print each difference")
    options = parser.parse_args()
    matched, all_parts = Counter[str](), Counter[str]()
    files = {*options.folder.rglob("*")}
    rows = {path for path in files if path.with_name(f"{path.name}.rows") in files}
    paths = sorted(path for path in files if path in rows or path.suffix.lower() in FORMATS)
    for path in paths:
        try:
            written = load(path).text
        except UserError as error:
            print(f"{path.name}: {error}")
            continue
        if (parts := parts_of(path)) is None:
            print(f"{path.name}: pandoc refuses it")
            continue
        figures = compare(parts, written)
        matched += figures.matched
        all_parts += figures.parts
        print(path.name, *(f"{k} {figures.matched[k]}/{n}" for k, n in figures.parts.items()))
        print(
            "\n".join(figures.differences[: None if options.show else 0]), end="\n" * options.show
        )
    for kind, count in all_parts.items():
        print(f"{kind:12} {matched[kind]:7,} of {count:7,} {matched[kind] / count:.2%}")


if __name__ == "__main__":
    main()
