"""Writers of tables, and of parts of documents in the formats that have them, for tests of loaders.

They write the least that each format requires, so that a test decides about every element.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stories import zipped

from leporello import Document
from leporello.loaders.files import load_bytes


@dataclass(frozen=True)
class Cell:
    """A cell: its paragraphs, separated by line breaks, and the columns and rows that it covers."""

    text: str
    columns: int = 1
    rows: int = 1

    def paragraphs(self, form: str) -> str:
        """Returns the paragraphs, each in a form such as `<p>{}</p>`."""
        return "".join(form.format(text) for text in self.text.split("\n")) if self.text else ""


Rows = Sequence[Sequence[Cell]]  # cells that begin in each row
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SPACES = {
    "w": _WORD,
    "r": _OFFICE,
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "c": "http://schemas.openxmlformats.org/drawingml/2006/chart",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "v": "urn:schemas-microsoft-com:vml",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "pic": "http://schemas.openxmlformats.org/drawingml/2006/picture",
    "dgm": "http://schemas.openxmlformats.org/drawingml/2006/diagram",
    "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
    "xlink": "http://www.w3.org/1999/xlink",
    **{
        name: f"urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"
        for name in ("office", "text", "table", "style", "presentation")
    },
    "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
}
XMLNS = " ".join(f'xmlns:{name}="{uri}"' for name, uri in _SPACES.items())


def read(content: str | bytes, name: str) -> Document:
    """Loads content by the format of a file name."""
    return load_bytes(content.encode() if isinstance(content, str) else content, Path(name))


def related(*targets: tuple[str, str]) -> str:
    """Writes relationships `r1`, `r2`, … of kinds and targets."""
    links = (
        f'<Relationship Id="r{n}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(targets, 1)
    )
    return f"<Relationships>{''.join(links)}</Relationships>"


def docx(body: str, parts: Mapping[str, str] = {}) -> bytes:
    """Writes a document of Word with a body and other parts, such as `word/numbering.xml`."""
    document = f"<w:document {XMLNS}><w:body>{body}</w:body></w:document>"
    return zipped({"word/document.xml": document, **parts})


def pptx(*slides: str, parts: Mapping[str, str] = {}, shown: str = "1") -> bytes:
    """Writes slides of shapes."""
    names = [f"slides/slide{n}.xml" for n in range(1, len(slides) + 1)]
    ids = "".join(f'<p:sldId id="{n}" r:id="r{n}"/>' for n in range(1, len(slides) + 1))
    pages = {
        f"ppt/{name}": f'<p:sld {XMLNS} show="{shown}"><p:cSld><p:spTree>{shapes}</p:spTree>'
        "</p:cSld></p:sld>"
        for name, shapes in zip(names, slides, strict=True)
    }
    presentation = f"<p:presentation {XMLNS}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    links = related(*(("slide", name) for name in names))
    first = {"ppt/presentation.xml": presentation, "ppt/_rels/presentation.xml.rels": links}
    return zipped({**first, **pages, **parts})


def shape(paragraphs: str) -> str:
    """Writes a shape of a slide with paragraphs."""
    return f"<p:sp><p:txBody>{paragraphs}</p:txBody></p:sp>"


def odt(body: str, styles: str = "", parts: Mapping[str, str] = {}) -> bytes:
    """Writes a document of LibreOffice with a body and automatic styles."""
    content = (
        f"<office:document-content {XMLNS}><office:automatic-styles>{styles}"
        f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.text"
    return zipped({"mimetype": kind, "content.xml": content, **parts})


def epub(pages: Mapping[str, str | bytes], spine: Sequence[str], navigation: str = "") -> bytes:
    """Writes a book of pages, of which the spine has some."""
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"'
        + (' properties="nav"/>' if name == navigation else "/>")
        for name in pages
    )
    places = "".join(f'<itemref idref="{name}"/>' for name in spine)
    container = "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>"
    book = f"<package><manifest>{items}</manifest><spine>{places}</spine></package>"
    return zipped({"m": "", "META-INF/container.xml": container, "b.opf": book, **pages})


def article(body: str) -> str:
    """Writes an article in JATS."""
    return f"<?xml version='1.0'?><article {XMLNS}><body>{body}</body></article>"


def in_book(page: str) -> bytes:
    """Writes a book of one page."""
    return epub({"a.xhtml": page}, ["a.xhtml"])


def html_table(rows: Rows, header: int) -> str:
    """Writes a table of HTML, whose paragraphs are elements or end with `<br>`."""
    written = ""
    for number, row in enumerate(rows):
        tag = "th" if number < header else "td"
        cells = (
            f"<{tag} colspan='{c.columns}' rowspan='{c.rows}'>"
            + (c.paragraphs("<p>{}</p>") if number % 2 else c.text.replace("\n", "<br/>"))
            + f"</{tag}>"
            for c in row
        )
        written += f"<tr>{''.join(cells)}</tr>"
    return f"<table>{written}</table>"


def html(rows: Rows, header: int) -> str:
    """Writes a page with a table."""
    return f"<html><body>{html_table(rows, header)}</body></html>"


def cals_table(rows: Rows, header: int) -> str:
    """Writes a table of DocBook."""
    width = sum(cell.columns for cell in rows[0])
    names = "".join(f"<colspec colname='c{n}'/>" for n in range(width))
    groups, free = ["", ""], dict.fromkeys(range(width), 0)
    for number, row in enumerate(rows):
        entries, columns = "", iter([c for c in range(width) if free[c] <= number])
        for cell in row:
            covered = [next(columns) for _ in range(cell.columns)]
            free |= dict.fromkeys(covered, number + cell.rows)
            span = f"namest='c{covered[0]}' nameend='c{covered[-1]}' morerows='{cell.rows - 1}'"
            entries += f"<entry {span}>{cell.paragraphs('<para>{}</para>')}</entry>"
        groups[number >= header] += f"<row>{entries}</row>"
    head = f"<thead>{groups[0]}</thead>" if header else ""
    return (
        f"<?xml version='1.0'?><book><table><tgroup>{names}{head}<tbody>{groups[1]}</tbody>"
        "</tgroup></table></book>"
    )


def docx_table(rows: Rows, header: int) -> bytes:
    """Writes a table of Word, in which merged cells continue below."""
    written, below = "", dict[int, Cell]()
    below_rows = dict[int, int]()  # rows that a cell above still covers, by column
    width = sum(cell.columns for cell in rows[0])
    for number, row in enumerate(rows):
        cells, column = iter(row), 0
        written += "<w:tr>" + "<w:trPr><w:tblHeader/></w:trPr>" * (number < header)
        while column < width:
            is_above = below_rows.get(column, 0) > 0
            cell = below[column] if is_above else next(cells)
            if not is_above:
                below[column], below_rows[column] = cell, cell.rows
            merge = "" if cell.rows == 1 else "<w:vMerge/>" if is_above else _RESTART
            text = "" if is_above else cell.paragraphs("<w:p><w:r><w:t>{}</w:t></w:r></w:p>")
            span = f"<w:gridSpan w:val='{cell.columns}'/>"
            written += f"<w:tc><w:tcPr>{span}{merge}</w:tcPr>{text or '<w:p/>'}</w:tc>"
            below_rows[column] -= 1
            column += cell.columns
        written += "</w:tr>"
    return docx(f"<w:tbl>{written}</w:tbl>")


_RESTART = "<w:vMerge w:val='restart'/>"


def pptx_table(rows: Rows, header: int) -> bytes:
    """Writes a table of PowerPoint, in which covered cells are marked."""
    width = sum(cell.columns for cell in rows[0])
    marks: dict[tuple[int, int], str] = {}
    written = ""
    for number, row in enumerate(rows):
        cells = iter(row)
        written += "<a:tr>"
        for column in range(width):
            text, covers = "", marks.get((number, column), "")
            if not covers:
                cell = next(cells)
                text = cell.paragraphs("<a:p><a:r><a:t>{}</a:t></a:r></a:p>")
                covers = f"gridSpan='{cell.columns}' rowSpan='{cell.rows}'"
                for i in range(cell.rows):
                    for j in range(cell.columns):
                        marks[number + i, column + j] = "vMerge='1'" if i else "hMerge='1'"
            written += f"<a:tc {covers}><a:txBody>{text or '<a:p/>'}</a:txBody></a:tc>"
        written += "</a:tr>"
    properties = f"<a:tblPr firstRow='{int(header > 0)}'/>"
    return pptx(f"<p:graphicFrame><a:tbl>{properties}{written}</a:tbl></p:graphicFrame>")


def odt_table(rows: Rows, header: int) -> bytes:
    """Writes a table of LibreOffice."""
    groups = ["", ""]
    for number, row in enumerate(rows):
        cells = "".join(
            f"<table:table-cell table:number-columns-spanned='{c.columns}' "
            f"table:number-rows-spanned='{c.rows}'>{c.paragraphs('<text:p>{}</text:p>')}"
            "</table:table-cell>" + "<table:covered-table-cell/>" * (c.columns - 1)
            for c in row
        )
        groups[number >= header] += f"<table:table-row>{cells}</table:table-row>"
    head = f"<table:table-header-rows>{groups[0]}</table:table-header-rows>" if header else ""
    return odt(f"<table:table>{head}{groups[1]}</table:table>")


def rtf_table(rows: Rows, _header: int) -> str:
    """Writes a table of RTF, whose merged cells are marked in each row."""
    width = sum(cell.columns for cell in rows[0])
    marks: dict[tuple[int, int], str] = {}
    written = ""
    for number, row in enumerate(rows):
        cells, shown, texts = iter(row), "", ""
        for column in range(width):
            mark = marks.get((number, column), "")
            cell = Cell("") if mark else next(cells)
            for i in range(cell.rows if not mark else 0):
                for j in range(cell.columns):
                    marks[number + i, column + j] = "\\clvmrg" if i else "\\clmrg"
            shown += f"{mark}\\cellx{column + 1}"
            texts += cell.text.replace("\n", "\\par ") + "\\cell "
        written += f"\\trowd{shown} {texts}\\row\n"
    return "{\\rtf1\\ansi " + written + "}"


TABLES: Mapping[str, Callable[[Rows, int], str | bytes]] = {
    "a.html": html,
    "a.epub": lambda rows, header: in_book(html(rows, header)),
    "a.nxml": lambda rows, header: article(f"<table-wrap>{html_table(rows, header)}</table-wrap>"),
    "a.xml": cals_table,
    "a.docx": docx_table,
    "a.pptx": pptx_table,
    "a.odt": odt_table,
    "a.rtf": rtf_table,
}
