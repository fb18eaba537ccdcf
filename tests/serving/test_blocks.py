"""Tests of the blocks that the page shows."""

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello import Document
from leporello.core.records import Section
from leporello.serving.blocks import Block, blocks
from leporello.serving.marks import cells, ranges

LINES = ["", " ", "# a", "- b", "  - c", "1. d", "| e | f |", "|---|---|", "```", "> g", "---"]
LINES += ["    h  i", "j\tk", "**l** _m_ `n`", "🦉 e\u0301", "x" * 5000, "o " * 3000]
LINES += ["\ud800", "==="]


def all_blocks(document: Document) -> list[Block]:
    pieces, at = list[Block](), 0
    while at < len(document.text):
        chosen, span = blocks(document, at, at + 500)
        assert span.start == at < span.end
        pieces += chosen
        at = span.end
    return pieces


@given(st.lists(st.sampled_from(LINES), max_size=25), st.sampled_from(["a.md", "a.txt", "a.py"]))
def test_blocks_contain_all_text_in_order(lines: list[str], name: str) -> None:
    document, end = Document(name, "\n".join(lines)), 0
    with mock.patch("leporello.serving.blocks._REGION", 50):
        pieces = all_blocks(document)
    for block in pieces:
        assert document.text[end : block.start].strip() == ""
        assert end <= block.start < block.end <= block.start + 4_000
        rows = cells(document.text, block)
        parts = [*ranges(document.text, block), *(cell for row in rows for cell in row)]
        assert all(block.start <= start <= stop <= block.end for start, stop, _ in parts)
        end = block.end
    assert document.text[end:].strip() == ""


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("The ferry crosses the river at noon and also\n"
         "at dusk, unless the chain is broken\nor ice.", ["paragraph"]),
        ("GRIGOR\nFifty-eight. Now the case.", ["lines"]),
        ("Rain fell\non the quay,\nand so\nit ends.", ["lines"]),
        ("          ODILE\n    You have seen one before.", ["code"]),
        ("Load      Toll\nhorse     2\ncart      9", ["code"]),
        ("Load\tToll\nhorse\t2", ["table"]),
        ("born in\n1871. The ferry", ["lines"]),
        ("1. One\n   and more\n2. Two", ["item", "item"]),
        ("Costs\nThe ferry costs a penny.", ["heading", "paragraph"]),
    ],
)  # fmt: skip
def test_shapes_of_plain_text(text: str, kinds: list[str]) -> None:
    sections = (Section("Costs", 0, len(text)),)
    document = Document("a.txt", text, sections=sections)
    assert [block.kind for block in all_blocks(document)] == kinds


def test_cells_are_below_their_columns() -> None:
    document = Document("a.csv", "Load\tToll\tNote\nLoad: cart\tNote: new\n")
    [block] = all_blocks(document)
    columns = [[column for *_, column in row] for row in cells(document.text, block)]
    assert columns == [[0, 1, 2], [0, 2]]
    hidden = [document.text[start:end] for start, end, _ in ranges(document.text, block)]
    assert hidden == ["Load: ", "Note: "]
