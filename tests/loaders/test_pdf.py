"""Tests of PDF: reading order, furniture, outline, tables, losses, scans and faults."""

import io
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pypdfium2
import pytest
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase.pdfdoc import PDFArray, PDFDictionary, PDFName, PDFString
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, Table

from leporello import Document, Span
from leporello.core.errors import UserError
from leporello.core.records import Loss
from leporello.loaders import Pdf
from leporello.loaders.files import load, load_bytes
from leporello.loaders.pdf import LARGEST_STREAM, ocr
from leporello.loaders.pdf.objects import has_hidden_layers
from leporello.text.outline import place_of_span

HEIGHT = 792  # points of a page
PROSE = "the quick brown fox jumps over the lazy dog and runs"
Draw = Callable[[Canvas], object]
Drawn = tuple[float, float, str] | tuple[float, float, str, float]


def pdf(pages: Sequence[str | Draw], password: str | None = None, title: str = "") -> bytes:
    """Returns a PDF with a line per page, or with drawn pages; an empty line is a box."""
    buffer = io.BytesIO()
    lock = StandardEncryption(password, ownerPassword="owner") if password is not None else None
    canvas = Canvas(buffer, pagesize=(612, HEIGHT), encrypt=lock)
    canvas.setTitle(title)
    for page in pages:
        if callable(page):
            page(canvas)
        elif page:
            canvas.drawString(72, 700, page)
        else:
            canvas.rect(10, 10, 50, 50)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def texts(*lines: Drawn) -> Draw:
    """Returns a function that draws texts: points from left and top, text, size of bold type."""

    def draw(canvas: Canvas) -> None:
        for x, y, text, *size in lines:
            canvas.setFont("Helvetica-Bold" if size else "Helvetica", *(size or [10]))
            canvas.drawString(x, HEIGHT - y, text)

    return draw


def read(content: bytes, loader: Pdf | None = None) -> Document:
    """Loads a PDF, by default without OCR."""
    return load_bytes(content, Path("a.pdf"), loader or Pdf(ocr="never"))


def lost(document: Document, what: str) -> Loss:
    """Returns the only loss of a kind."""
    (loss,) = (entry for entry in document.losses if entry.what == what)
    return loss


def test_pages_become_places() -> None:
    """Empty lines separate pages; a page with only drawings is a loss with its place."""
    document = read(pdf(["First page.", "", "Third one."], title="My PDF"))
    assert document.title == "My PDF"
    assert [p.name for p in document.places] == ["p. 1", "p. 2", "p. 3"]
    first, third = (document.text.index(word) for word in ("First", "Third"))
    assert place_of_span(document, Span(first, first + 1)) == "p. 1"
    assert place_of_span(document, Span(first, third + 1)) == "p. 1 to p. 3"
    assert document.places[-1].end == len(document.text)
    loss = lost(document, "page without text")
    assert (loss.place, loss.count) == ("p. 2", 1)
    assert loss.characters == 10  # the average of the other pages


def test_pages_have_the_labels_of_the_file() -> None:
    """Labels name the places if they are unique."""

    def labelled(*prefixes: str) -> list[str]:
        def draw(canvas: Canvas, prefix: str) -> None:
            canvas.addPageLabel(canvas.getPageNumber() - 1, style="ROMAN_LOWER", prefix=prefix)
            canvas.drawString(72, 700, "text")

        pages = [lambda canvas, prefix=p: draw(canvas, prefix) for p in prefixes]
        return [place.name for place in read(pdf(pages)).places]

    assert labelled("", "A-") == ["p. i", "p. A-i"]
    assert labelled("A-", "A-") == ["p. 1", "p. 2"]


@pytest.mark.parametrize("by_rows", [False, True], ids=["column by column", "row by row"])
def test_two_columns_are_read_one_after_the_other(by_rows: bool) -> None:
    """Lines over both columns keep their position, whatever the order in the file."""
    first = [(72, 120 + 12 * i, f"L{i} {PROSE[:40]}") for i in range(20)]
    second = [(320, 120 + 12 * i, f"R{i} {PROSE[:40]}") for i in range(20)]
    columns = [line for pair in zip(first, second, strict=True) for line in pair]
    lines = columns if by_rows else first + second
    title = "The title of it all that goes over both of the columns, from left to right"
    head = (72, 90, title, 12.0)
    foot = (72, 400, "Below, something goes over both columns again, " + PROSE)
    words = read(pdf([texts(foot, *lines, head)])).text.split()
    marks = [word for word in words if word in ("title", "Below,") or word[1:].isdigit()]
    numbers = [f"{side}{i}" for side in "LR" for i in range(20)]
    assert marks == ["title", *numbers, "Below,"]


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_turned_pages_are_read(angle: int) -> None:
    """Rotated text, and pages with a rotation, are read like other pages."""

    def draw(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        canvas.rotate(angle)
        for i in range(3):
            canvas.drawString(0, -12 * i, f"line {i}")
        canvas.setPageRotation(angle)

    assert read(pdf([draw])).text == "line 0\nline 1\nline 2"


def test_turned_heads_of_columns_are_a_row_of_the_table() -> None:
    rows = [
        ["Port", "Ships", "Fee", "Depth"],
        *([name, *"12", "33"] for name in ("Riga", "Memel", "Libau")),
    ]

    def draw(canvas: Canvas) -> None:
        for j, head in enumerate(rows[0]):
            canvas.saveState()
            canvas.translate(80 + 90 * j, 600)
            canvas.rotate(90)
            canvas.drawString(0, 0, head)
            canvas.restoreState()
        for i, row in enumerate(rows[1:]):
            for j, cell in enumerate(row):
                canvas.drawString(72 + 90 * j, 586 - 14 * i, cell)

    assert rows_of(read(pdf([draw]))) == rows


def test_hyphenated_words_are_joined() -> None:
    """A hyphen is removed if the joined word is known or a part is not, also across pages."""
    lines = "an imple-|mentation of well-|known methods is|known as well. DNA-|binding re-"
    first = texts(*((72, 100 + 12 * i, line) for i, line in enumerate(lines.split("|"))))
    document = read(pdf([first, texts((72, 100, "sults follow."))]))
    assert document.text == (
        "an implementation of well-known methods is\nknown as well. DNA-binding results follow."
    )
    assert document.text[document.places[1].start :] == "sults follow."


def test_recurring_lines_at_page_edges_are_furniture() -> None:
    """Headers and page numbers are losses with exact sizes, or stay in the text on request."""
    bodies = [f"Chapter text of {word} goes here." for word in ("one", "two", "three", "four")]
    content = pdf([
        texts((72, 40, "A Journal of Lamps"), (72, 300, body), (300, 760, f"- {i} -"))
        for i, body in enumerate(bodies, 17)
    ])  # fmt: skip
    document = read(content)
    assert document.text == "\n\n".join(bodies)
    head, number = (lost(document, what) for what in ("running head or foot", "page number"))
    assert head.furniture
    assert number.furniture
    assert (head.characters, head.count, head.place) == (4 * 18, 4, "p. 1 to p. 4")
    assert (number.characters, number.count) == (4 * 6, 4)
    complete = read(content, Pdf(furniture=True, ocr="never"))
    assert complete.text.count("A Journal of Lamps") == complete.text.count("- ") == 4
    assert complete.losses == ()


def test_bookmarks_are_the_outline() -> None:
    """Bookmarks open sections at their titles, with their levels."""

    def draw(canvas: Canvas) -> None:
        texts((72, 80, "Before."), (72, 120, "1 One"), (72, 160, "Text."), (72, 200, "1.1 Two"))(
            canvas
        )
        for key, level, y in (("One", 0, 110), ("Two", 1, 190)):
            canvas.bookmarkPage(key, fit="XYZ", top=HEIGHT - y)
            canvas.addOutlineEntry(key, key, level)

    document = read(pdf([draw]))
    sections = [(s.title, s.level, document.text[s.start : s.end]) for s in document.sections]
    assert sections == [("One", 1, "1 One\n\nText.\n\n1.1 Two"), ("Two", 2, "1.1 Two")]


def test_type_sizes_are_the_outline_without_bookmarks() -> None:
    """The largest line of the first page is the title; smaller sizes are levels."""
    page: list[Drawn] = [(72, 60, "All About Lamps", 24.0)]
    for n, (title, size) in enumerate([("Oil", 16.0), ("Olive oil", 12.0), ("Gas", 16.0)]):
        page += [(72, 100 + 100 * n, title, size)]
        page += [(72, 130 + 100 * n + 12 * i, f"{PROSE} {i}") for i in range(4)]
    document = read(pdf([texts(*page)]))
    assert document.title == "All About Lamps"
    outline = [(section.title, section.level) for section in document.sections]
    assert outline == [("Oil", 1), ("Olive oil", 2), ("Gas", 1)]


PORTS = [
    ["Port", "Ships", "Fee", "Remark"],
    ["Riga", "12", "", "closed in winter"],
    ["Memel", "", "210", ""],
    ["Libau", "9", "115", "open"],
]


def table(rows: Sequence[Sequence[str]], *style: tuple[object, ...]) -> Draw:
    """Returns a function that draws a table between lines of prose."""
    flowable = Table(rows, style=[("VALIGN", (0, 0), (-1, -1), "MIDDLE"), *style])

    def draw(canvas: Canvas) -> None:
        texts(*((72, y, f"{PROSE} and further, to the end") for y in (60, 72, 560, 572)))(canvas)
        flowable.wrapOn(canvas, 500, 400)
        flowable.drawOn(canvas, 72, 300)

    return draw


def rows_of(document: Document) -> list[list[str]]:
    """Returns the cells of lines with tabs."""
    return [line.split("\t") for line in document.text.splitlines() if "\t" in line]


@pytest.mark.parametrize(
    "rows",
    [
        PORTS,
        [row[::-1] for row in PORTS],  # an empty cell first and last
        [PORTS[0], *([row[0], "", *row[2:]] for row in PORTS[1:])],  # a column with only a head
        [[sea, *row] for sea, row in zip(["", "Baltic", "", "North"], PORTS, strict=True)],
        [row + row[1:3] for row in PORTS],
        [*PORTS, ["Windau", "", "7", ""], ["", "", "", "frozen"]],  # a row of one cell
    ],
)
@pytest.mark.parametrize("align", ["LEFT", "RIGHT", "CENTER"])
@pytest.mark.parametrize("grid", [0.1, 1])
def test_empty_cells_keep_their_place(rows: list[list[str]], align: str, grid: float) -> None:
    """All rows of a table have as many tabs, so that values stay in their column."""
    style = ("ALIGN", (1, 0), (-1, -1), align), ("GRID", (0, 0), (-1, -1), grid, (0, 0, 0))
    document = read(pdf([table(rows, *style)]))
    assert rows_of(document) == rows


def test_a_table_that_is_drawn_by_columns_has_rows() -> None:
    """Cells with figures are not columns of text, even if the file has the columns in turn."""
    cells = [
        (72 + 90 * column, 200 + 14 * i, row[column])
        for column in range(4) for i, row in enumerate(PORTS) if row[column]
    ]  # fmt: skip
    assert rows_of(read(pdf([texts(*cells)]))) == PORTS


@pytest.mark.parametrize("place", ["TOP", "MIDDLE", "BOTTOM"])
def test_lines_of_a_cell_are_joined(place: str) -> None:
    """A row with space around it is one row, whatever the place of its cells."""
    rows = [
        ["Port", "Ships\nin 1912", "Fee", "Remark"],
        ["Riga", "12", "", "closed in winter"],
        [
            "Memel",
            "",
            "210",
            "open all year except in the\nweeks of ice, when the naviga-\ntion ends",
        ],
        ["Libau\n(Liepaja)", "9", "115", ""],
    ]
    document = read(pdf([table(rows, ("VALIGN", (0, 0), (-1, -1), place))]))
    right = [[cell.replace("-\n", "").replace("\n", " ") for cell in row] for row in rows]
    assert rows_of(document) == right


def test_drawn_lines_separate_cells() -> None:
    """Lines decide, not gaps: of rows, of columns with hardly a gap, of merged cells."""
    rows = [
        ["Port", "Ships", "", "Remark"],
        ["", "1912", "1913", ""],
        ["Riga on\nthe Düna", "12", "14", "closed in\nwinter"],
        ["Memel", "1200000", "1300000", "open all year\nexcept in the\nweeks of ice"],
        ["Libau", "", "9", ""],
    ]
    style = [
        ("GRID", (0, 0), (-1, -1), 0.5, (0, 0, 0)), ("SPAN", (1, 0), (2, 0)),
        ("LEFTPADDING", (0, 0), (-1, -1), 1.5), ("RIGHTPADDING", (0, 0), (-1, -1), 1.5),
        ("TOPPADDING", (0, 0), (-1, -1), 0), ("BOTTOMPADDING", (0, 0), (-1, -1), 0),
    ]  # fmt: skip
    right = [[cell.replace("\n", " ") for cell in row] for row in rows]
    assert rows_of(read(pdf([table(rows, *style)]))) == right


@pytest.mark.parametrize(
    ("lines", "right"),
    [
        (["Lamp|Oil|Price", "Genie|olive|3.50", "|at most|", "Reading|none|12"],
         "Lamp|Oil|Price\nGenie|olive at most|3.50\nReading|none|12"),
        (["Lamp|Number of|Price in", "|lamps|marks", "Genie|3|3.50", "Reading|12|12"],
         "Lamp|Number of lamps|Price in marks\nGenie|3|3.50\nReading|12|12"),
        (["Lamp|Year|Price", "Genie|1912|3.50", "|1913|4.50", "Reading|1912|12"],
         "Lamp|Year|Price\nGenie|1912|3.50\n|1913|4.50\nReading|1912|12"),
        (["Lamp|Number|Price", "|of|in", "|all|marks", "|lamps|of gold", "Oil|3|3.5", "Wick|12|1"],
         "Lamp|Number of all lamps|Price in marks of gold\nOil|3|3.5\nWick|12|1"),
        (["Lamp|Year|Price", "Lamps of the old||", "kind . . . . . . . . .|1912|3.50", "New|7|8"],
         "Lamp|Year|Price\nLamps of the old kind|1912|3.50\nNew|7|8"),
        (["|1912||1913|", "Lamp|Sold|Price|Sold|Price", "Genie||3.50|5|", "Reading|7|12||9"],
         "|1912||1913|\nLamp|Sold|Price|Sold|Price\nGenie||3.50|5|\nReading|7|12||9"),
    ],
)  # fmt: skip
def test_tables_without_space_between_rows(lines: list[str], right: str) -> None:
    """Common gaps of rows separate cells; small letters continue cells, figures do not."""
    cells = [
        (72 + 80 * column, 200 + 12 * i, cell)
        for i, line in enumerate(lines) for column, cell in enumerate(line.split("|")) if cell
    ]  # fmt: skip
    prose = [(72, y, f"{PROSE} and further, to the end of it") for y in (150, 162, 300, 312)]
    text = read(pdf([texts(*prose[:2], *cells, *prose[2:])])).text
    assert "\n".join(line for line in text.splitlines() if "fox" not in line and line) == (
        right.replace("|", "\t")
    )


def test_a_head_over_two_columns_keeps_the_grid() -> None:
    """Text over several columns is in the first of them; rows on the next page have the grid."""
    rows = [["Port", "North and south", "", "Fee"], ["", "North", "South", "in marks"]]
    rows += [[f"Port {i}", f"{i}", f"{i * i}" if i % 2 else "", f"{3 * i}"] for i in range(9)]
    span = ("SPAN", (1, 0), (2, 0))
    document = read(pdf([table(rows, span), table(rows[5:])]))
    assert rows_of(document) == rows + rows[5:]


@pytest.mark.parametrize(
    "lines",
    [
        [("1.", "The first of the items"), ("2.", "The second"), ("3.", "And a third")],
        [("•", "The first of the items"), ("•", "The second"), ("•", "And a third")],
        [("int a;", "// first"), ("float b;", "// second"), ("char c;", "// third"), ("}", "")],
        [("Oil", PROSE), ("", PROSE), ("", PROSE), ("Gas", PROSE), ("", PROSE), ("", PROSE),
         ("", PROSE), ("Wax", PROSE), ("", PROSE)],
    ],
)  # fmt: skip
def test_lists_and_code_are_not_tables(lines: list[tuple[str, ...]]) -> None:
    """Gaps behind markers and in code are blanks."""
    cells = [
        (72 + 60 * column, 200 + 12 * i, cell)
        for i, line in enumerate(lines) for column, cell in enumerate(line) if cell
    ]  # fmt: skip
    text = read(pdf([texts(*cells)])).text
    assert "\t" not in text
    assert text.split() == " ".join(map(" ".join, lines)).split()


@pytest.mark.parametrize(
    ("markup", "right"),
    [
        ("10<super>6</super> tons at 5 x 10<super>-3</super>.", "10^6 tons at 5 x 10^-3."),
        ("a note<super>3</super>, a word.<super>12</super> Next", "a note^3, a word.^12 Next"),
        ("in 2007<super>1</super> and 2008", "in 2007^1 and 2008"),
        ("the 1<super>st</super> and 22<super>nd</super> time", "the 1st and 22nd time"),
        ("dated by <super>14</super>C, 1912", "dated by 14C, 1912"),
        ("log<sub>10</sub>5 and 101<sub>2</sub>", "log10 5 and 101_2"),
        ("SO<sub>4</sub><super>2-</super> ions", "SO4^2- ions"),
        ("x<super>n+1</super> or x<super>2</super>", "x^(n+1) or x^2"),
        ("add 2<super>1</super>/<sub>2</sub> or <super>1</super>/<sub>3</sub> of it",
         "add 2 1/2 or 1/3 of it"),
        ("Louis XIV<super>e</super> et M<super>me</super> B", "Louis XIVe et Mme B"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [6, 8])
def test_raised_figures_have_a_sign(markup: str, right: str, size: int) -> None:
    """Raised figures never run into the number before them; lowered ones touch their letters."""
    markup = markup.replace("<super>", f'<super size="{size}" rise="{size / 2}">')
    markup = markup.replace("<sub>", f'<sub size="{size}" rise="{size / 3}">')
    line = Paragraph(markup, ParagraphStyle("body", fontSize=10))

    def draw(canvas: Canvas) -> None:
        line.wrapOn(canvas, 400, 100)
        line.drawOn(canvas, 72, 600)

    assert read(pdf([draw])).text == right


@pytest.mark.parametrize(
    ("parts", "right"),
    [
        ([(72, 99, "take 2"), (103.2, 95, "1", 7), (103.2, 102.5, "4", 7), (110, 99, "c")],
         "take 2 1/4 c"),
        ([(72, 99, "add"), (93, 95, "3", 7), (93, 102.5, "4", 7), (101, 99, "cup")], "add 3/4 cup"),
        ([(72, 99, "km"), (72, 120, "last"), (85.3, 95.5, "2", 6)], "km^2\nlast"),
    ],
)  # fmt: skip
def test_stacked_figures_are_fractions(parts: list[Drawn], right: str) -> None:
    """Small figures above each other are a fraction; marks may follow later in the file."""
    assert read(pdf([texts(*parts)])).text == right


def rendered(mode: int) -> Draw:
    """Returns a function that draws a text in a render mode."""

    def draw(canvas: Canvas) -> None:
        text = canvas.beginText(72, 600)
        text.setTextRenderMode(mode)
        text.textOut("SECRET")
        text.setTextRenderMode(0)
        canvas.drawText(text)

    return draw


def colored(color: tuple[float, ...], ground: tuple[float, ...] | None = None) -> Draw:
    """Returns a function that draws a text of a color and opacity, on a ground."""

    def draw(canvas: Canvas) -> None:
        if ground:
            canvas.setFillColorRGB(*ground)
            canvas.rect(60, 580, 200, 60, stroke=0, fill=1)
        canvas.setFillColorRGB(*color)
        canvas.drawString(72, 600, "SECRET")
        canvas.setFillColorRGB(0, 0, 0, 1)

    return draw


def both(first: Draw, second: Draw) -> Draw:
    return lambda canvas: (first(canvas), second(canvas))


def cropped(canvas: Canvas) -> None:
    canvas.setCropBox((50, 50, 500, 750))
    canvas.drawString(510, 600, "SECRET")


@pytest.mark.parametrize(
    "draw",
    [
        rendered(3), rendered(7), colored((1, 1, 1)), colored((0.99, 1, 1)),
        colored((1, 1, 1), (1, 1, 1)), colored((0, 0, 0, 0)), cropped,
        texts((72, -400, "SECRET")), texts((-300, 200, "SECRET")), texts((72, 1200, "SECRET")),
        texts((72, 200, "SECRET", 0.1)),
    ],
)  # fmt: skip
def test_text_that_is_not_seen_is_a_loss(draw: Draw) -> None:
    """Invisible, white, tiny and cropped text is left out, and its characters are counted."""
    document = read(pdf([both(draw, texts((72, 99, "Seen.")))]))
    assert document.text == "Seen."
    loss = lost(document, "hidden text")
    assert (loss.characters, loss.place) == (6, "p. 1")


@pytest.mark.parametrize(
    "draw",
    [
        colored((1, 1, 1), (0, 0, 0.5)), colored((1, 1, 1), (0.6, 0.6, 0.6)), colored((0.8, 0, 0)),
        rendered(1), rendered(2),
        lambda canvas: (scan(["x"])(canvas), rendered(3)(canvas)),  # read by OCR before
    ],
)  # fmt: skip
def test_text_that_is_seen_is_no_loss(draw: Draw) -> None:
    """White text on a dark ground, and the text layer of a scan, are read."""
    document = read(pdf([both(draw, texts((72, 99, "Seen.")))]))
    assert sorted(document.text.split()) == ["SECRET", "Seen."]
    assert not any(loss.what == "hidden text" for loss in document.losses)


def objects_pdf(*objects: bytes) -> bytes:
    """Returns a PDF of objects; the first one is the catalog."""
    body = b"".join(b"%d 0 obj%s endobj\n" % pair for pair in enumerate(objects, 1))
    return b"%PDF-1.5\n" + body + b"trailer<</Root 1 0 R>>"


def stream(content: bytes, head: bytes = b"") -> bytes:
    return b"<<%s/Length %d>>stream\n%s\nendstream" % (head, len(content), content)


PAGE = (
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R"
    b"/Resources<</Font<</F 5 0 R>>%s>>>>"
)


def page_pdf(
    shown: bytes, *more: bytes, font: bytes = b"", catalog: bytes = b"", resources: bytes = b""
) -> bytes:
    """Returns a PDF of one page with further entries, and with further objects from number 6."""
    return objects_pdf(
        b"<</Type/Catalog/Pages 2 0 R%s>>" % catalog,
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        PAGE % (4, resources),
        stream(shown),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica%s>>" % font,
        *more,
    )


@pytest.mark.parametrize(
    ("off", "text", "hidden"), [(b"[7 0 R]", "Seen", 6), (b"[]", "Seen SECRET", 0)]
)
def test_hidden_layers_are_losses(off: bytes, text: str, hidden: int) -> None:
    """Text of a layer that is switched off is left out."""
    shown = (
        b"BT /F 12 Tf 72 700 Td (Seen) Tj ET /OC /L BDC BT /F 12 Tf 72 600 Td (SECRET) Tj ET EMC"
    )
    settings = b"/OCProperties<</OCGs[7 0 R]/D<</ON[]/OFF%s>>>>" % off
    layer = (b"null", b"<</Type/OCG/Name(Layer)>>")
    content = page_pdf(shown, *layer, catalog=settings, resources=b"/Properties<</L 7 0 R>>")
    document = read(content)
    assert " ".join(document.text.split()) == text
    assert [loss.characters for loss in document.losses] == [hidden] * bool(hidden)


def test_settings_of_layers_may_be_packed() -> None:
    """Compressed objects are searched for layers that are switched off."""
    for off, hidden in ((b" [7 0 R]", True), (b"[]", False)):
        settings = zlib.compress(b"1 0 <</D<</OFF%s>>>>" % off)
        packed = stream(settings, b"/Type/ObjStm/N 1/First 4/Filter/FlateDecode")
        assert has_hidden_layers(objects_pdf(packed)) == hidden


def test_a_page_with_only_invisible_text_is_read_with_a_note() -> None:
    """Letters that are drawn, or nothing at all, have a text layer, which a note reports."""
    document = read(pdf([rendered(3), "Typed."]))
    assert document.text == "SECRET\n\nTyped."
    assert document.notes == ("1 of 2 pages have only invisible text, which was read",)


def test_forms_and_annotations_are_text_or_losses(tmp_path: Path) -> None:
    """Boxes have their tick; drawings, pictures, files and hidden fields are losses."""

    def annotate(canvas: Canvas, kind: str, **entries: object) -> None:
        rect = PDFArray([72, 72, 90, 90])
        entry = PDFDictionary({"Type": PDFName("Annot"), "Subtype": PDFName(kind), "Rect": rect})
        entry.dict.update(entries)
        canvas._addAnnotation(entry)

    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "A form.")
        canvas.acroForm.checkbox(name="Paid", checked=True, x=72, y=600)
        canvas.acroForm.checkbox(name="Sent", checked=False, x=72, y=500)
        canvas.acroForm.choice(
            name="Port", value="Riga", options=["Riga", "Memel"], x=72, y=400, width=90, height=20
        )
        canvas.acroForm.textfield(name="Name", value="Ada", x=72, y=350, width=90, height=20)
        canvas.acroForm.textfield(
            name="Key", value="SECRET", annotationFlags="hidden", x=72, y=300, width=90, height=20
        )
        canvas.textAnnotation("Ask her.", Rect=(200, 600, 220, 620))
        canvas.drawImage(ImageReader(Image.new("RGB", (9, 9))), 300, 300)
        annotate(canvas, "Ink")
        annotate(canvas, "Stamp", Contents=PDFString("Approved"))
        annotate(canvas, "FreeText", Contents=PDFString("Pay soon"))
        file = PDFDictionary({"Type": PDFName("Filespec"), "F": PDFString("costs.csv")})
        annotate(canvas, "FileAttachment", FS=file)

    with pypdfium2.PdfDocument(pdf([draw])) as file:
        file.new_attachment("more.csv").set_data(b"a,b")
        file.save(tmp_path / "b.pdf")
    document = read((tmp_path / "b.pdf").read_bytes())
    assert document.text.split("\n\n") == [
        "A form.", "Paid: ☒", "Sent: ☐", "Port: Riga", "Name: Ada", "Ask her.", "Approved",
        "Pay soon",
    ]  # fmt: skip
    assert lost(document, "annotation").place == lost(document, "image").place == "p. 1"
    assert {x.place for x in document.losses if x.what == "attachment"} == {"costs.csv", "more.csv"}
    assert lost(document, "hidden text").characters == len("Key: SECRET")


def test_a_broken_page_is_a_loss() -> None:
    """The other pages are read, and keep their numbers."""
    document = read(objects_pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R 9 0 R 4 0 R]/Count 3>>",
        PAGE % (6, b""), PAGE % (7, b""),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        stream(b"BT /F 12 Tf 72 700 Td (First.) Tj ET"),
        stream(b"BT /F 12 Tf 72 700 Td (Third.) Tj ET"),
    ))  # fmt: skip
    assert document.text == "First.\n\nThird."
    assert lost(document, "broken page").place == "p. 2"
    assert place_of_span(document, Span(8, 12)) == "p. 3"


def test_words_of_tight_type_are_apart() -> None:
    """Gaps that pdfium does not take for blanks separate words, as in the pages of groff."""
    shown = (
        b"BT /F 10 Tf 72 700 Td (read) Tj 3.2 Tc 20.02 0 Td (,t) Tj 0 Tc 8.76 0 Td (hen) Tj"
        b" 20 0 Td (an) Tj 2.9 Tc 11.12 0 Td (yr) Tj 0 Tc 11.23 0 Td (emaining) Tj ET"
    )
    assert read(page_pdf(shown)).text == "read, then any remaining"


@pytest.mark.parametrize(
    ("letter", "shown", "text", "unknown"),
    [
        (b"E000", b"AA known cAfe", "known c\ufffdfe", 3),
        (b"D835DC49", b"the A of A", "the 𝑉 of 𝑉", 0),
        (b"00B4", b"cafAe and Axy", "café and ´xy", 0),
        (b"00A8", b"Ausser", "üsser", 0),
        (b"02DC", b"piAnata in Auser", "piñata in ˜user", 0),
    ],
)
def test_letters_are_those_of_the_font(
    letter: bytes, shown: bytes, text: str, unknown: int
) -> None:
    """Private-use characters are losses, and accents belong to the next letter."""
    names = b"1 beginbfchar <41> <%s> endbfchar 1 beginbfrange <61> <7A> <0061> endbfrange" % letter
    cmap = b"begincmap 1 begincodespacerange <00> <FF> endcodespacerange %s endcmap" % names
    shown = b"BT /F 12 Tf 72 700 Td (%s) Tj ET" % shown
    document = read(page_pdf(shown, stream(cmap), font=b"/ToUnicode 6 0 R"))
    assert document.text == text
    assert sum(loss.characters for loss in document.losses) == unknown


def scan(lines: Sequence[str]) -> Draw:
    """Returns a function that draws pages with a picture of lines."""
    picture = Image.new("L", (1224, 1584), "white")
    for i, line in enumerate(lines):
        ImageDraw.Draw(picture).text((150, 200 + 60 * i), line, "black", ImageFont.load_default(36))
    return lambda canvas: canvas.drawImage(ImageReader(picture), 0, 0, 612, HEIGHT)


@pytest.mark.integration
def test_scans_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OCR reads only pages without text, with a note, and its result is cached."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    content = pdf(["Typed.", scan(["The lamp stands", "in the cave."])])
    for _ in range(2):
        document = read(content, Pdf())
        assert document.text == "Typed.\n\nThe lamp stands\nin the cave."
        assert document.notes == ("1 of 2 pages were read by OCR",)
        assert document.losses == ()
        monkeypatch.setattr(ocr, "_engine", None)  # cached pages need no engine


def test_a_scan_names_the_extra_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without text is refused with the command; pages with only a footer are losses."""
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf([scan(["x"]), scan(["y"])]))
    with pytest.raises(UserError, match=r"no text \(page without text: .*pip install 'lep.*ocr"):
        load(path)
    with pytest.raises(UserError, match="ocr: always needs the package rapidocr"):
        load(path, loader=Pdf(ocr="always"))
    stamped = both(scan(["x"]), texts((72, HEIGHT - 20, "Downloaded.")))
    document = read(pdf([*[stamped] * 3, PROSE]), Pdf())
    assert document.text == PROSE
    assert lost(document, "page without text").place == "p. 1 to p. 3"


def test_only_the_password_opens_a_locked_pdf() -> None:
    """The error explains how to set it; a file that only its owner's password protects is read."""
    assert read(pdf(["open"], "")).text == "open"
    content = pdf(["secret"], "key")
    with pytest.raises(UserError, match=r"a\.pdf: is locked; .*password: \$VARIABLE.*qpdf"):
        read(content)
    with pytest.raises(UserError, match="has another password"):
        read(content, Pdf(password="other"))  # noqa: S106 -- test data
    assert read(content, Pdf(password="key")).text == "secret"  # noqa: S106 -- test data


@pytest.mark.parametrize("filters", [1, 2])
def test_a_bomb_is_refused_before_it_is_unpacked(filters: int) -> None:
    """A page stream of many megabytes is refused, even if compressed twice."""
    content = b" " * (LARGEST_STREAM + 1)
    for _ in range(filters):
        content = zlib.compress(content)
    names = b"/FlateDecode" * filters
    stream = b"4 0 obj<</Filter[%s]>>stream\n%s\nendstream" % (names, content)
    with pytest.raises(UserError, match=r"a\.pdf: a page unpacks to more than 64 MiB.*qpdf"):
        read(pdf(["text"]) + stream)
