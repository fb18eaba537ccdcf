"""Tests of tables in documents, charts and diagrams: each cell is in its column."""

import re
from itertools import product

import pytest
from contents import TABLES, XMLNS, Cell, Rows, docx, pptx, read, related

from leporello.loaders.tables.grid import GridCell, fields


def cells(*rows: str) -> list[list[Cell]]:
    """Returns rows of cells that cover one field, written with `|` between them."""
    return [[*map(Cell, row.split("|"))] for row in rows]


PORTS = cells("Port|Ships 2023|Ships 2024", "Riga||13", "Memel|21|")
GROUPS = [
    [Cell("Port", rows=2), Cell("Ships", columns=2)],
    [Cell("2023"), Cell("2024")],
    *cells("Riga||13", "Libau|5|8"),
]
GRIDS: dict[str, tuple[Rows, int, str]] = {
    "empty cells": (PORTS, 1, "Port\tShips 2023\tShips 2024\nRiga\t\t13\nMemel\t21\t"),
    "empty first cells": (cells("|2023|2024", "Riga|1|2", "|3|4"), 1,
     "\t2023\t2024\nRiga\t1\t2\n\t3\t4"),
    "a row without text": (cells("A|B", "|", "1|2"), 1, "A\tB\n1\t2"),
    "a cell over rows": (
     [*cells("Port|2023|2024"), [Cell("Libau", rows=2), Cell("31"), Cell("33")], *cells("41|43")],
     1, "Port\t2023\t2024\nLibau\t31\t33\nLibau\t41\t43"),
    "a cell over columns": (
     [*cells("Port|2023|2024", "Riga|1|2"), [Cell("Libau"), Cell("closed", columns=2)]], 1,
     "Port\t2023\t2024\nRiga\t1\t2\nLibau\tclosed\tclosed"),
    "a cell over a row": (
     [*cells("Port|2023|2024"), [Cell("Baltic", columns=3)], *cells("Riga|1|2")], 1,
     "Port\t2023\t2024\nBaltic\nRiga\t1\t2"),
    "a header of two rows": (GROUPS, 2, "Port\tShips 2023\tShips 2024\nRiga\t\t13\nLibau\t5\t8"),
    "a header without marks": (GROUPS, 0, "Port\tShips 2023\tShips 2024\nRiga\t\t13\nLibau\t5\t8"),
    "paragraphs in cells": (
     cells("Name|Address|Fee", "Ada|3 Quay St\nRiga|12", "Bo|4 Hill\nMemel|15"), 1,
     "Name\tAddress\tFee\nAda\t3 Quay St Riga\t12\nBo\t4 Hill Memel\t15"),
}  # fmt: skip


# The loader of RTF reads neither headers nor merged cells.
UNMARKED = {
    *("a header of two rows", "a header without marks", "a cell over a row", "a cell over rows"),
    "a cell over columns",
}


@pytest.mark.parametrize(
    ("name", "grid"),
    [(n, g) for n, g in product(TABLES, GRIDS) if n != "a.rtf" or g not in UNMARKED],
)
def test_each_cell_of_a_table_is_in_its_column(name: str, grid: str) -> None:
    rows, header, expected = GRIDS[grid]
    assert read(TABLES[name](rows, header), name).text == expected


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<table><caption>Fees</caption><tr><td>a<td><ul><li>x<li>y</ul><td>b</table>",
         "Fees\na\tx y\tb"),
        ("<table><tr><td>a<td><table><tr><td>1<td>2<tr><td>3<td>4</table><td>b<tr><td>c<td>d",
         "a\t1 2; 3 4\tb\nc\td"),
        (  # mails and old pages are laid out by tables
            "<table><tr><td><p>Dear Ada,</p><p>thank you.</p><tr><td><table><tr><td>Rope<td>3"
            "<tr><td>Tar<td></table></table>",
            "Dear Ada,\n\nthank you.\n\nRope\t3\nTar\t",
        ),
        ("<table role=presentation><tr><td><p>a</p><p>b</p><td>c<tr><td>d<td>e</table>",
         "a\n\nb\n\nc\nd\te"),
        (f"<table><tr><th>a<th>b<tr><td>c<td><p>d<p>{'e' * 3000}</table>",
         f"a\tb\nc\td {'e' * 3000}"),
        (f"<table><tr><td>a<td>b<tr><td>c<td><p>d<p>{'e' * 3000}</table>",
         f"a\tb\nc\n\nd\n\n{'e' * 3000}"),
        ("<table><tr><th>Y<th>Q<th>n<tr><th rowspan=3>2025<th rowspan=3>1<tr><td>a<tr><td>b",
         "Y\tQ\tn\n2025\t1\n2025\t1\ta\n2025\t1\tb"),
        ("<table><tr><td>a<td>&nbsp;<td>b<tr><td>c<td>d<td>&nbsp;</table>", "a\t\tb\nc\td\t"),
        ("<table><tr><td><pre>1\n2</pre><td>x<tr><td>3<td>y</table>", "1 2\tx\n3\ty"),
        ("<table><tr><td colspan=1000>a<td>b<tr><td>c<td>d</table>", "a\ta\tb\nc\td"),
        ("<table><tr><td rowspan=65534>a<td>b<tr><td>c</table>", "a\tb\na\tc"),
        ("<table><tr><td rowspan=0>a<td>b<tr><td>c</table>", "a\tb\na\tc"),
        ("<div role=table><div role=row><span role=columnheader>Port</span><span role=columnheader>"
         "2023</span><span role=columnheader>2024</span></div><div role=row><div role=cell>Riga"
         "</div><div role=cell></div><div role=cell><p>13</div></div></div>end",
         "Port\t2023\t2024\nRiga\t\t13\n\nend"),
    ],
)  # fmt: skip
def test_html_tables_inside_and_around_text(page: str, text: str) -> None:
    assert read(f"<html>{page}", "a.html").text == text


def test_sections_and_places_in_tables_are_exact() -> None:
    page = (
        "<h1>One</h1><table><tr><th><h4>Port</h4><th><h4>Ships</h4><tr><td colspan=2><h2>East</h2>"
        "<tr><td>Riga<td><p>1</p><p>2</p></table>end<h1>Two</h1>"
    )
    document = read(f"<html>{page}", "a.html")
    assert document.text == "One\n\nPort\tShips\nEast\nRiga\t1 2\n\nend\n\nTwo"
    titles = [(s.title, document.text[s.start :].startswith(s.title)) for s in document.sections]
    assert titles == [("One", True), ("East", True), ("Two", True)]
    rows = (
        "<row><cell>a</cell><cell>b</cell></row><pb n='7'/><row><cell><p>c</p><p>d</p></cell>"
        "<cell/></row>"
    )
    document = read(f"<?xml version='1.0'?><TEI><text><table>{rows}</table></text></TEI>", "a.xml")
    assert [document.text[p.start : p.end] for p in document.places] == ["c d\t"]


def test_spans_do_not_multiply_a_table() -> None:
    long = GridCell("x" * 300, rows=3)
    rows: list[list[str | GridCell]] = [[long, "a"], ["b"], ["c"]]
    assert [row for _, row in fields(rows)] == [["x" * 300, "a"], ["", "b"], ["", "c"]]
    wide: list[list[str | GridCell]] = [[GridCell("a", columns=999), "b"]] * 500
    assert [row for _, row in fields(wide)] == [["a", "b"]] * 500


CHART = (
    f"<c:chartSpace {XMLNS}><c:chart><c:plotArea><c:pie3DChart><c:ser><c:tx><c:strRef><c:strCache>"
    "<c:pt idx='0'><c:v>2023</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef>"
    "<c:strCache><c:pt idx='0'><c:v>Rope</c:v></c:pt><c:pt idx='1'><c:v>Tar</c:v></c:pt>"
    "<c:pt idx='2'><c:v>Coal</c:v></c:pt></c:strCache></c:strRef></c:cat><c:val><c:numRef>"
    "<c:numCache><c:pt idx='0'><c:v>40</c:v></c:pt><c:pt idx='2'><c:v>0.10000000000000001</c:v>"
    "</c:pt></c:numCache></c:numRef></c:val></c:ser></c:pie3DChart></c:plotArea></c:chart>"
    "</c:chartSpace>"
)
DIAGRAM = (
    f"<dgm:dataModel {XMLNS}><dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>Plan</a:t></a:r></a:p>"
    "</dgm:t></dgm:pt></dgm:ptLst></dgm:dataModel>"
)
GRAPHICS = "<c:chart r:id='r1'/><dgm:relIds r:dm='r2'/><c:chart r:id='r9'/><c:chart r:id='r3'/>"


@pytest.mark.parametrize("name", ["a.pptx", "a.docx"])
def test_charts_of_any_kind_and_diagrams_are_text(name: str) -> None:
    odd = "<chartSpace><chartData/></chartSpace>"
    parts = {"g/chart.xml": CHART, "g/data.xml": DIAGRAM, "g/odd.xml": odd}
    names = (("chart", "chart.xml"), ("diagramData", "data.xml"), ("chart", "odd.xml"))
    links = related(*((kind, f"../g/{target}") for kind, target in names))
    if name == "a.pptx":
        parts = {f"ppt/{part}": content for part, content in parts.items()}
        parts["ppt/slides/_rels/slide1.xml.rels"] = links
        frames = re.sub(r"<[^>]*>", lambda m: f"<p:graphicFrame>{m[0]}</p:graphicFrame>", GRAPHICS)
        document = read(pptx(frames, parts=parts), name)
    else:
        parts["word/_rels/document.xml.rels"] = links
        drawing = f"<w:p><w:r><w:drawing>{GRAPHICS}</w:drawing></w:r></w:p>"
        document = read(docx(drawing, parts), name)
    assert document.text == "\t2023\nRope\t40\nTar\t\nCoal\t0.1\n\nPlan"
    assert [loss.what for loss in document.losses] == ["chart"] * 2
