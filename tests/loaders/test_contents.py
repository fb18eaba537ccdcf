"""Tests of fields, forms, hidden text and odd parts of files: text, or a loss."""

import io
import zipfile
from pathlib import Path

import pytest
from contents import XMLNS, docx, epub, odt, pptx, read, related, shape
from stories import zipped

from leporello.core.errors import UserError
from leporello.loaders import Pptx
from leporello.loaders.files import load_bytes

# Fields, forms and what libraries leave out


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def field(instruction: str, result: str = "", data: str = "") -> str:
    """Writes a field of Word; without a result if that is empty."""
    kinds = f"<w:r><w:fldChar w:fldCharType='begin'>{data}</w:fldChar></w:r>"
    kinds += f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
    kinds += f"<w:r><w:fldChar w:fldCharType='separate'/></w:r>{result}" if result else ""
    return kinds + "<w:r><w:fldChar w:fldCharType='end'/></w:r>"


BOX = "<w:ffData><w:checkBox>{}</w:checkBox></w:ffData>"
TICKED = (
    "<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val='{}'/></w14:checkbox></w:sdtPr>"
    "<w:sdtContent>{}</w:sdtContent></w:sdt>"
)
CONTROL = "<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>"
CHOICES = (
    "<w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='A'/><w:listEntry w:val='B'/>"
    "</w:ddList></w:ffData>"
)
NESTED_FIELDS = field("IF </w:instrText></w:r>{}<w:r><w:instrText> = 1", run("yes")).format(
    field("MERGEFIELD x", run("no"))
)
RUBY = f"<w:ruby><w:rt>{run('kan')}</w:rt><w:rubyBase>{run('漢')}</w:rubyBase></w:ruby>"
SYMBOLS = "<w:sym w:font='Wingdings' w:char='F0A8'/><w:sym w:font='Symbol' w:char='F0B1'/>"
MOVED = f"<w:moveTo>{run('b')}</w:moveTo><w:moveFrom>{run('c')}</w:moveFrom>"
TEXT_BOX = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"

BOTH = (
    f"<mc:AlternateContent><mc:Choice><w:drawing>{TEXT_BOX}</w:drawing></mc:Choice><mc:Fallback>"
    f"<w:pict>{TEXT_BOX}</w:pict></mc:Fallback></mc:AlternateContent>"
)


@pytest.mark.parametrize(
    ("paragraph", "text"),
    [
        (f"<w:fldSimple w:instr='MERGEFIELD x'>{run('KL-4471')}</w:fldSimple>", "KL-4471"),
        (field("DATE", run("4 May 2019")), "4 May 2019"),
        (NESTED_FIELDS, "yes"),
        (field("FORMCHECKBOX", data=BOX.format("<w:checked/>")), "☒"),
        (field("FORMCHECKBOX", data=BOX.format("<w:default w:val='0'/>")), "☐"),
        (field("FORMDROPDOWN", data=CHOICES), "B"),
        (TICKED.format(1, run("x")), "☒"),
        (TICKED.format(0, run("☐")), "☐"),
        (CONTROL.format(run("4,700 guilders")), "4,700 guilders"),
        (f"<w:bdo w:val='rtl'>{run('one')}</w:bdo> <w:dir>{run(' two')}</w:dir>", "one two"),
        (run("עברית", "<w:rtl/>"), "עברית"),
        (f"{field('X').replace('end', 'odd')}</w:p><w:p>{run('after')}", "after"),
        (f"{run('5')}<w:r><w:br w:type='page'/></w:r>{run('6')}", "5\n6"),
        (f"<w:r>{RUBY}</w:r>", "漢(kan)"),
        (f"<w:smartTag>{run('a')}</w:smartTag><w:customXml>{run(' b')}</w:customXml>", "a b"),
        (f"<w:r>{SYMBOLS}</w:r>", "☐±"),
        (f"<w:ins>{run('a')}</w:ins>{MOVED}", "ab"),
        (f"<w:r>{BOTH}</w:r>{run('text')}", "text\n\nboxed"),
        (f"<w:r><w:pict><v:textbox>{TEXT_BOX}</v:textbox></w:pict></w:r>", "boxed"),
    ],
)  # fmt: skip
def test_fields_and_controls_of_word_are_text(paragraph: str, text: str) -> None:
    document = read(docx(f"<w:p>{paragraph}</w:p>"), "a.docx")
    assert (document.text, document.losses) == (text, ())


def test_controls_around_blocks_rows_and_cells_of_word() -> None:
    paragraph = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"
    cell = f"<w:tc>{paragraph}</w:tc>"
    rows = f"<w:tr>{cell.format('a')}{CONTROL.format(cell.format('b'))}</w:tr>"
    rows += CONTROL.format(f"<w:tr>{cell.format('c')}{cell.format('d')}</w:tr>")
    body = f"{CONTROL.format(paragraph.format('x'))}<w:tbl>{rows}</w:tbl>"
    assert read(docx(body), "a.docx").text == "x\n\na\tb\nc\td"


NOTES = {
    f"word/{kind}s.xml": f"<w:{kind}s {XMLNS}><w:{kind} w:id='4' w:author='Ada'><w:p>"
    f"{run('in ' + kind)}</w:p></w:{kind}></w:{kind}s>"
    for kind in ("footnote", "endnote", "comment")
}


def test_notes_and_comments_of_word_are_at_the_end() -> None:
    marks = "".join(
        f"<w:r><w:{k}Reference w:id='4'/></w:r>" for k in ("endnote", "footnote", "comment")
    )
    document = read(docx(f"<w:p>{run('2019')}{marks}{run(' x')}</w:p>", NOTES), "a.docx")
    notes = "[2] in footnote\n\n[1] in endnote\n\nComment [c1] Ada: in comment"
    assert document.text == f"2019[1][2][c1] x\n\n{notes}"


def test_a_tab_does_not_end_a_heading_of_word() -> None:
    heading = "<w:pPr><w:outlineLvl w:val='0'/></w:pPr><w:r><w:t>A.</w:t><w:tab/></w:r>"
    document = read(docx(f"<w:p>{heading}{run('Aim')}</w:p><w:p>{run('x')}</w:p>"), "a.docx")
    assert [section.title for section in document.sections] == ["A. Aim"]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<form>Name <input value='Ada'> <textarea>free</textarea></form>", "Name Ada free"),
        ("<input type=checkbox checked>Insured<input type=radio>Not", "☒ Insured ☐ Not"),
        ("a<progress value=3 max=5>3/5</progress><meter>2</meter>b", "a 3/5 2 b"),
        ("a<dialog>closed</dialog><dialog open>open</dialog>b", "a\nopen\nb"),
        ("<select><option selected>red<option>blue</select>", "☒ red\n☐ blue"),
        ("a<input type=hidden value=x><input type=password value=y>b", "a b"),
        ("<ruby>漢<rt>kan</rt>字<rp>(</rp><rt>ji</rt><rp>)</rp></ruby>", "漢(kan)字(ji)"),
    ],
)
def test_values_of_html_forms_and_readings_are_text(page: str, text: str) -> None:
    """Values that a browser shows are read; a reading is in parentheses after its characters."""
    assert read(f"<html>{page}</html>", "a.html").text == text


RTF_BOX = r"{\rtf1 yes {\shp{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt boxed\par}}{\shprslt old}}}"
OLE = "<p:graphicFrame><p:oleObj progId='Excel.Sheet.12'/></p:graphicFrame>"
GROUP = (
    f"<p:grpSp><p:grpSp>{shape('<a:p><a:r><a:t>inner</a:t></a:r></a:p>')}</p:grpSp>{OLE}</p:grpSp>"
)
OBJECT = (
    "<w:p><w:r><w:t>x</w:t><w:object/><w:sym w:font='Odd' w:char='F041'/></w:r></w:p><w:altChunk/>"
)


@pytest.mark.parametrize(
    ("content", "name", "text", "lost"),
    [
        (RTF_BOX, "a.rtf", "yes boxed", set()),
        (pptx(GROUP), "a.pptx", "inner", {"embedded object"}),
        (docx(OBJECT), "a.docx", "x", {"embedded object", "symbol", "inserted part"}),
    ],
)
def test_other_content_is_text_or_a_loss(
    content: str | bytes, name: str, text: str, lost: set[str]
) -> None:
    document = read(content, name)
    assert " ".join(document.text.split()) == text
    assert {loss.what for loss in document.losses} == lost


def test_a_file_of_embedded_objects_only_names_them() -> None:
    with pytest.raises(UserError, match=r"no text \(embedded object: .* \(Excel\.Sheet\.12\)"):
        read(pptx(OLE), "a.pptx")


SECRET = "secret words"  # noqa: S105 -- no password
X = f"<w:p>{run('x')}</w:p>"
SLIDE_X = shape("<a:p><a:r><a:t>x</a:t></a:r></a:p>")

BY_STYLE, NOT_HIDDEN = "<w:rStyle w:val='V'/>", "<w:vanish w:val='0'/>"
_VANISH = "<w:style w:styleId='V'><w:rPr><w:vanish/></w:rPr></w:style>"
STYLES = {"word/styles.xml": f"<w:styles {XMLNS}>{_VANISH}</w:styles>"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", f"<html><p>x<p hidden>{SECRET}"),
        ("a.html", f"<html>x<div style='color:red; DISPLAY : none'><div>{SECRET}</div></div>"),
        ("a.html", f"<html>x<span style='visibility:hidden'>{SECRET}</span>"),
        ("a.html", f"<html>x<template><p>{SECRET}</p></template>"),
        ("a.epub", epub({"a": f"<html><p>x</p><p hidden=''>{SECRET}</p></html>"}, ["a"])),
        ("a.eml", f"From: a\nSubject: b\nContent-Type: text/html\n\n<p>x<p hidden>{SECRET}"),
        ("a.docx", docx(f"<w:p>{run('x')}{run(SECRET, '<w:vanish/>')}</w:p>")),
        ("a.docx", docx(f"<w:p>{run('x')}{run(SECRET, BY_STYLE)}</w:p>", STYLES)),
        ("a.odt", odt(f"<text:p>x</text:p><text:section text:display='none'>{SECRET}"
                      "</text:section>")),
        ("a.odt", odt(f"<text:p>x<text:span text:style-name='V'>{SECRET}</text:span></text:p>",
                      "<style:style style:name='V'><style:text-properties text:display='none'/>"
                      "</style:style>")),
        ("a.rtf", rf"{{\rtf1 x{{\v {SECRET}}}}}"),
        ("a.pptx", pptx(SLIDE_X + SLIDE_X.replace(">x<", f">{SECRET}<").replace(
            "<p:sp>", "<p:sp><p:cNvPr hidden='1'/>"))),
    ],
)  # fmt: skip
def test_hidden_text_is_left_out_and_counted(name: str, content: str | bytes) -> None:
    document = read(content, name)
    assert document.text.split()[-1] == "x"
    losses = {(loss.what, loss.characters) for loss in document.losses}
    assert ("hidden text", len(SECRET)) in losses


def test_text_that_is_shown_is_not_hidden() -> None:
    page = "<p aria-hidden=true>a<p hidden=until-found>b<details>c</details> <noscript>d</noscript>"
    assert read(f"<html>{page}", "a.html").text.split() == ["a", "b", "c", "d"]
    assert read(docx(f"<w:p>{run('a', NOT_HIDDEN)}</w:p>"), "a.docx").text == "a"
    hidden = load_bytes(pptx(SLIDE_X, shown="0"), Path("a.pptx"), Pptx(hidden=True))
    assert hidden.text == "x"


def test_pages_of_a_book_outside_its_order_are_read() -> None:
    pages: dict[str, str | bytes] = {
        name: f"<html><body><p>Text of {name}.</p></body></html>" for name in ("one", "two", "nav")
    }
    pages["broken"] = bytes(range(32)) * 9
    document = read(epub(pages, ["two", "broken"], "nav"), "a.epub")
    assert document.text == "Text of two.\n\nText of one."
    assert [p.name for p in document.places] == ["chapter 1", "page one, outside the chapters"]
    losses = {(loss.what, loss.furniture) for loss in document.losses}
    assert losses == {("contents", True), ("chapter", False)}


PICTURE = (
    "<w:r><w:drawing><wp:inline><wp:docPr/><pic:pic><a:blip r:embed='r9'/></pic:pic></wp:inline>"
    "</w:drawing></w:r>"
)
CHART = "<p:graphicFrame><c:chart r:id='r1'/></p:graphicFrame>"
CHART_PARTS = {
    "ppt/slides/_rels/slide1.xml.rels": related(("chart", "c.xml")), "ppt/slides/c.xml": "<no",
}  # fmt: skip
WITH_PICTURE = {"P.png": "picture!", "word/document.xml": f"<w:d {XMLNS}>{run('x')}</w:d>"}


@pytest.mark.parametrize(
    ("content", "name", "lost"),
    [
        (docx(X, {"word/numbering.xml": "<no"}), "a.docx", "numbers of lists"),
        (docx(X, {"word/styles.xml": "<no"}), "a.docx", "styles"),
        (docx(X, {"word/comments.xml": "<no"}), "a.docx", "comments"),
        (docx(f"<w:p>{run('x')}{PICTURE}</w:p>"), "a.docx", "image"),
        (pptx(SLIDE_X, "", parts={"ppt/slides/slide2.xml": "<no"}), "a.pptx", "slide"),
        (pptx(SLIDE_X + CHART, parts=CHART_PARTS), "a.pptx", "chart"),
        # The picture does not match its checksum.
        (zipped(WITH_PICTURE).replace(b"picture!", b"!erutcip"), "a.docx", ""),
    ],
)
def test_one_odd_part_refuses_no_file(content: bytes, name: str, lost: str) -> None:
    document = read(content, name)
    assert document.text == "x"
    assert {loss.what for loss in document.losses} == ({lost} if lost else set())


def test_a_book_whose_container_names_no_package_is_read() -> None:
    book = epub({"a": "<html><p>one</p></html>"}, ["a"])
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files |= {
        "META-INF/container.xml": b"<container><rootfiles><rootfile/></rootfiles></container>"
    }
    assert read(zipped(files), "a.epub").text == "one"
