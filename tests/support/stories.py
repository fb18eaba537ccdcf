"""Stories, and functions that write them in each format, for tests of loaders."""

import email.policy
import html
import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Story:
    """Document with a table and sections: level, heading and paragraphs. The first is the title."""

    sections: Sequence[tuple[int, str, Sequence[str]]]
    rows: Rows = ()

    def words(self) -> list[str]:
        """Returns all words, in order."""
        texts = [text for _, heading, body in self.sections for text in (heading, *body)]
        return " ".join([*texts, *(cell for row in self.rows for cell in row)]).split()


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """Returns a ZIP archive of files; the first one is not compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(files.items()):
            # A fixed date: names of tests contain these bytes, and processes must agree on them.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED if number else zipfile.ZIP_STORED
            archive.writestr(entry, content)
    return buffer.getvalue()


def saved(document: object) -> bytes:
    """Returns a document as the bytes that a library saves."""
    buffer = io.BytesIO()
    document.save(buffer)  # type: ignore[attr-defined]  # documents of several libraries
    return buffer.getvalue()


def pdf(*pages: str) -> bytes:
    """Returns a PDF file with one line on each page."""
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(buffer := io.BytesIO())
    for text in pages:
        canvas.drawString(72, 700, text)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def docx(story: Story) -> bytes:
    """Writes a document of Word."""
    import docx as library

    document = library.Document()
    for level, heading, body in story.sections:
        document.add_heading(heading, level)
        for text in body:
            document.add_paragraph(text)
    if story.rows:
        table = document.add_table(0, len(story.rows[0]))
        for row in story.rows:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = text
    return saved(document)


def pptx(story: Story) -> bytes:
    """Writes slides of PowerPoint: one per section, with the last paragraph as the notes."""
    from pptx import Presentation
    from pptx.util import Inches

    presentation = Presentation()
    for _, heading, body in story.sections:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = heading
        slide.placeholders[1].text = "\n".join(body[:-1])
        slide.notes_slide.notes_text_frame.text = "".join(body[-1:])
    if story.rows:
        size = (len(story.rows), len(story.rows[0]), *[Inches(1)] * 4)
        table = presentation.slides[-1 % len(presentation.slides)].shapes.add_table(*size).table
        for i, row in enumerate(story.rows):
            for j, text in enumerate(row):
                table.cell(i, j).text = text
    return saved(presentation)


def page(story: Story) -> str:
    """Writes XHTML."""
    body = "".join(
        f"<h{level}>{html.escape(heading)}</h{level}>"
        + "".join(f"<p>{html.escape(text)}</p>" for text in body)
        for level, heading, body in story.sections
    )
    head = "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>T</title></head>"
    return f"{head}<body>{body}{_html_table(story.rows)}</body></html>"


def _html_table(rows: Rows) -> str:
    cells = ("".join(f"<td>{html.escape(c)}</td>" for c in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>" if rows else ""


def epub(story: Story) -> bytes:
    """Writes a book with one file per section."""
    names = [f"part {i}.xhtml" for i in range(len(story.sections))]
    items = "".join(
        f'<item id="i{i}" href="{n.replace(" ", "%20")}" media-type="application/xhtml+xml"/>'
        for i, n in enumerate(names)
    )
    spine = "".join(f'<itemref idref="i{i}"/>' for i in range(len(names)))
    last = len(names) - 1
    pages = {
        f"OEBPS/{name}": page(Story([section], story.rows if i == last else ()))
        for i, (name, section) in enumerate(zip(names, story.sections, strict=True))
    }
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container><rootfiles>"
            "<rootfile full-path='OEBPS/book.opf'/></rootfiles></container>",
            "OEBPS/book.opf": "<package xmlns:dc='http://purl.org/dc/elements/1.1/'>"
            f"<metadata><dc:title>T</dc:title></metadata><manifest>{items}</manifest>"
            f"<spine>{spine}</spine></package>",
            **pages,
        }
    )


def opendocument(story: Story) -> bytes:
    """Writes a document of LibreOffice: the files that the format requires."""
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text", "table")
    )
    body = "".join(
        f'<text:h text:outline-level="{level}">{html.escape(heading)}</text:h>'
        + "".join(f"<text:p>{html.escape(text)}</text:p>" for text in paragraphs)
        for level, heading, paragraphs in story.sections
    )
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    rows = "".join(
        f"<table:table-row>{''.join(cell.format(html.escape(c)) for c in row)}</table:table-row>"
        for row in story.rows
    )
    table = f'<table:table table:name="Costs">{rows}</table:table>' if rows else ""
    content = (
        f"<office:document-content {spaces}><office:body><office:text>{body}{table}"
        "</office:text></office:body></office:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.text"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{mimetype}"/>'
        "</manifest:manifest>"
    )
    return zipped({"mimetype": mimetype, "content.xml": content, "META-INF/manifest.xml": manifest})


def markdown(story: Story) -> str:
    """Writes Markdown."""
    parts = ((f"{'#' * level} {heading}", *body) for level, heading, body in story.sections)
    return "\n\n".join([*(text for part in parts for text in part), _grid(story.rows)])


def _grid(rows: Rows) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def restructured(story: Story) -> str:
    """Writes reStructuredText."""
    parts = (
        (f"{heading}\n{'=-~^'[level - 1] * (3 + len(heading))}", *body)
        for level, heading, body in story.sections
    )
    return "\n\n".join([*(text for part in parts for text in part), _grid(story.rows)])


_TEX = {"\\": r"\textbackslash{}", **{c: "\\" + c for c in "&%$#_{}"}}


def latex(story: Story) -> str:
    """Writes LaTeX."""

    def escaped(text: str) -> str:
        return "".join(_TEX.get(c, c) for c in text)

    def section(level: int, heading: str, body: Sequence[str]) -> str:
        title = f"\\{'sub' * (level - 1)}section{{{escaped(heading)}}} % a comment"
        return "\n\n".join([title, *map(escaped, body)])

    rows = " \\\\\n".join(" & ".join(map(escaped, row)) for row in story.rows)
    table = f"\n\\begin{{tabular}}{{ll}}\n{rows}\n\\end{{tabular}}\n" if rows else ""
    body = "\n".join(section(*parts) for parts in story.sections)
    return f"\\documentclass{{article}}\n\\begin{{document}}\n{body}{table}\n\\end{{document}}\n"


def rtf(story: Story) -> str:
    """Writes rich text."""

    def escaped(text: str) -> str:
        units = text.encode("utf-16-le")
        codes = struct.unpack(f"<{len(units) // 2}h", units)
        plain = {*map(chr, range(32, 127))} - {*"\\{}"}
        return "".join(chr(c) if c > 0 and chr(c) in plain else f"\\u{c}?" for c in codes)

    texts = [text for _, heading, body in story.sections for text in (heading, *body)]
    rows = ("".join(escaped(c) + "\\cell " for c in row) + "\\row\n" for row in story.rows)
    body = "".join(f"{escaped(text)}\\par\n" for text in texts) + "".join(rows)
    return "{\\rtf1\\ansi\\ansicpg1252 " + body + "}"


def jats(story: Story) -> str:
    """Writes the XML of an article, with nested sections."""
    body, open_ = "", 0
    for level, heading, paragraphs in story.sections:
        body += "</sec>" * (open_ - level + 1) + "<sec>" * (level - min(open_, level - 1))
        open_ = level
        body += f"<title>{html.escape(heading)}</title>"
        body += "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
    table = f"<table-wrap>{_html_table(story.rows)}</table-wrap>" if story.rows else ""
    return f"<?xml version='1.0'?><article><body>{body}{table}{'</sec>' * open_}</body></article>"


def tei(story: Story) -> str:
    """Writes the XML of an edition."""
    xml = jats(story).replace("article>", "TEI>").replace("sec>", "div>").replace("title>", "head>")
    return re.sub("table-wrap>", "figure>", xml)


def notebook(story: Story) -> str:
    """Writes a Jupyter notebook: a text cell per section, and the table as the output of code."""
    texts = [markdown(Story([section])) for section in story.sections]
    cells: list[object] = [{"cell_type": "markdown", "source": text} for text in texts]
    if story.rows:
        table = "\n".join("\t".join(row) for row in story.rows)
        output = {"output_type": "stream", "text": table.splitlines(keepends=True)}
        cells.append({"cell_type": "code", "source": "", "outputs": [output]})
    return json.dumps({"nbformat": 4, "cells": cells})


def mail(story: Story) -> bytes:
    """Writes an email with the table as an attachment."""
    message = EmailMessage(policy=email.policy.SMTP)
    message["From"], message["Date"] = "a@example.org", "Thu, 02 May 2024 10:00:00 +0000"
    texts = [text for _, heading, body in story.sections for text in (heading, *body)]
    message.set_content("\n".join(texts))
    if story.rows:
        data = "\n".join(map(",".join, story.rows)).encode()
        message.add_attachment(data, maintype="text", subtype="csv", filename="table.csv")
    return bytes(message)


# Writers of stories by suffix, first those that mark headings.
WRITERS: Mapping[str, Callable[[Story], str | bytes]] = {
    ".docx": docx, ".odt": opendocument, ".epub": epub, ".html": page, ".md": markdown,
    ".rst": restructured, ".tex": latex, ".nxml": jats, ".xml": tei, ".ipynb": notebook,
    ".pptx": pptx, ".rtf": rtf, ".eml": mail,
}  # fmt: skip
