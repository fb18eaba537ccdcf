"""Tests of numbers of lists, raised figures and formulas in all formats that have them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import pytest
from contents import XMLNS, article, docx, in_book, odt, pptx, read, shape


@dataclass(frozen=True)
class Item:
    """An item of a list with the lists inside it, and the form of its list's numbers."""

    text: str
    items: "Sequence[Item]" = ()
    form: str = "1"


def _nested(items: Sequence[Item], begin: Callable[[Item], str], item: str, end: str) -> str:
    inner = "".join(
        item.format(i.text, _nested(i.items, begin, item, end) if i.items else "") for i in items
    )
    return begin(items[0]) + inner + end


def html_list(items: Sequence[Item]) -> str:
    return _nested(items, lambda i: f"<ol type='{i.form}'>", "<li><p>{}</p>{}</li>", "</ol>")


_JATS = {"1": "order", "a": "alpha-lower", "A": "alpha-upper", "i": "roman-lower"}
_DOCBOOK = {"1": "arabic", "a": "loweralpha", "A": "upperalpha", "i": "lowerroman"}
_FORMATS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman"}
_SCHEMES = {"1": "arabic", "a": "alphaLc", "A": "alphaUc", "i": "romanLc"}


def jats_list(items: Sequence[Item]) -> str:
    begin = "<list list-type='{}'>"
    item = "<list-item><p>{}</p>{}</list-item>"
    return article(_nested(items, lambda i: begin.format(_JATS[i.form]), item, "</list>"))


def docbook_list(items: Sequence[Item]) -> str:
    begin = "<orderedlist numeration='{}'>"
    item = "<listitem><para>{}</para>{}</listitem>"
    text = _nested(items, lambda i: begin.format(_DOCBOOK[i.form]), item, "</orderedlist>")
    return f"<?xml version='1.0'?><book>{text}</book>"


def _leveled(items: Sequence[Item], level: int = 0) -> list[tuple[int, Item]]:
    return [pair for i in items for pair in ((level, i), *_leveled(i.items, level + 1))]


def docx_level(level: int, form: str, text: str, more: str = "") -> str:
    more = more if "<w:start" in more else f"<w:start w:val='1'/>{more}"
    shown = f"<w:numFmt w:val='{form}'/><w:lvlText w:val='{text}'/>"
    return f"<w:lvl w:ilvl='{level}'>{more}{shown}</w:lvl>"


def docx_numbering(levels: str, more: str = "") -> dict[str, str]:
    """Writes the numbering `1` of Word with levels, and other numberings of the same kind."""
    numbers = "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num>"
    return {
        "word/numbering.xml": f"<w:numbering {XMLNS}><w:abstractNum w:abstractNumId='0'>{levels}"
        f"</w:abstractNum>{numbers}{more}</w:numbering>"
    }


def docx_item(text: str, level: int = 0, number: int = 1) -> str:
    numbers = f"<w:numPr><w:ilvl w:val='{level}'/><w:numId w:val='{number}'/></w:numPr>"
    return f"<w:p><w:pPr>{numbers}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def docx_list(items: Sequence[Item]) -> bytes:
    leveled = _leveled(items)
    forms = {level: item.form for level, item in leveled}
    levels = (docx_level(at, _FORMATS[form], f"%{at + 1}.") for at, form in forms.items())
    body = "".join(docx_item(item.text, level) for level, item in leveled)
    return docx(body, docx_numbering("".join(levels)))


def pptx_list(items: Sequence[Item]) -> bytes:
    paragraphs = (
        f"<a:p><a:pPr lvl='{level}'><a:buAutoNum type='{_SCHEMES[item.form]}Period'/></a:pPr>"
        f"<a:r><a:t>{item.text}</a:t></a:r></a:p>"
        for level, item in _leveled(items)
    )
    return pptx(shape("".join(paragraphs)))


def odt_list(items: Sequence[Item]) -> bytes:
    forms = {level: item.form for level, item in _leveled(items)}
    levels = "".join(
        f"<text:list-level-style-number text:level='{at + 1}' style:num-format='{form}' "
        "style:num-suffix='.'/>"
        for at, form in forms.items()
    )
    styles = f"<text:list-style style:name='L'>{levels}</text:list-style>"
    item = "<text:list-item><text:p>{}</text:p>{}</text:list-item>"
    first = "<text:list text:style-name='L'>"
    text = _nested(items, lambda _: "<text:list>", item, "</text:list>")
    return odt(text.replace("<text:list>", first, 1), styles)


LISTS: Mapping[str, Callable[[Sequence[Item]], str | bytes]] = {
    "a.html": lambda items: f"<html>{html_list(items)}</html>",
    "a.epub": lambda items: in_book(f"<html>{html_list(items)}</html>"),
    "a.nxml": jats_list,
    "a.xml": docbook_list,
    "a.docx": docx_list,
    "a.pptx": pptx_list,
    "a.odt": odt_list,
}


# A writer of each format around the forms of plain, raised and lowered text.
_HTML = ("{}", "<sup>{}</sup>", "<sub>{}</sub>")
_XML = ("{}", "<superscript>{}</superscript>", "<subscript>{}</subscript>")
_RUN = "<w:r><w:rPr><w:vertAlign w:val='{}'/></w:rPr><w:t xml:space='preserve'>{{}}</w:t></w:r>"
_SPAN = "<text:span text:style-name='{}'>{{}}</text:span>"
_STYLES = "".join(
    f"<style:style style:name='{name}'><style:text-properties style:text-position='{position}'/>"
    "</style:style>"
    for name, position in (("sup", "super 58%"), ("sub", "-33% 58%"))
)
FIGURES: Mapping[str, tuple[Callable[[str], str | bytes], tuple[str, ...]]] = {
    "a.html": (lambda text: f"<html><p>{text}</p></html>", _HTML),
    "a.nxml": (lambda text: article(f"<p>{text}</p>"), _HTML),
    "a.xml": (lambda text: f"<book><para>{text}</para></book>", _XML),
    "a.docx": (
        lambda text: docx(f"<w:p>{text}</w:p>"),
        tuple(map(_RUN.format, ("baseline", "superscript", "subscript"))),
    ),
    "a.pptx": (
        lambda text: pptx(shape(f"<a:p>{text}</a:p>")),
        tuple(f"<a:r><a:rPr baseline='{n}'/><a:t>{{}}</a:t></a:r>" for n in (0, 30000, -25000)),
    ),
    "a.odt": (
        lambda text: odt(f"<text:p>{text}</text:p>", _STYLES),
        ("{}", _SPAN.format("sup"), _SPAN.format("sub")),
    ),
    "a.rtf": (lambda text: f"{{\\rtf1 {text}}}", ("{}", "{{\\super {}}}", "{{\\sub {}}}")),
}


RULES = [Item("Coal"), Item("Rent", [Item("flat", form="a"), Item("shed", form="a")]), Item("Dogs")]
DEEP = [Item("A", [Item("B", [Item("C", form="i"), Item("D", form="i")], "A")])]
ITEMS = {
    "flat": ([Item("Coal"), Item("Rent")], "1. Coal 2. Rent"),
    "nested": (RULES, "1. Coal 2. Rent a. flat b. shed 3. Dogs"),
    "deep": (DEEP, "1. A A. B i. C ii. D"),
    "letters": ([Item(f"x{n}", form="a") for n in range(28)][24:26], "a. x24 b. x25"),
}


@pytest.mark.parametrize(("name", "items"), [*product(LISTS, ITEMS)])
def test_items_of_lists_have_their_numbers(name: str, items: str) -> None:
    rules, expected = ITEMS[items]
    assert " ".join(read(LISTS[name](rules), name).text.split()) == expected


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<ol start=4><li>Coal<li>Rent</ol>", "4. Coal\n5. Rent"),
        ("<ol reversed><li>a<li>b<li>c</ol>", "a\nb\nc"),
        ("<ol><li value=7>a<li>b</ol>", "7. a\n8. b"),
        ("<ol type=A start=27><li>a</ol>", "AA. a"),
        ("<ol style='list-style: inside lower-alpha'><li>a<li>b</ol>", "a. a\nb. b"),
        ("<ol style='list-style-type: upper-roman'><li>a</ol>", "I. a"),
        ("<ol style='list-style: none'><li>a</ol><nav><ol><li>b</ol></nav>", "a\n\nb"),
        ("<ol><li><h2>Scope</h2>x<li><p>y</p><p>z</p></ol>", "1. Scope\n\nx\n2. y\n\nz"),
        ("<ol style='list-style:decimal-leading-zero'><li>a</ol>", "01. a"),
        ("<ol><li><li>b</ol><ul><li>c</ul>", "1.\n2. b\n\nc"),
    ],
)
def test_html_lists_count_as_in_a_browser(page: str, text: str) -> None:
    assert read(f"<html>{page}", "a.html").text == text


CLAUSES = docx_level(0, "upperRoman", "Article %1") + docx_level(
    1, "decimal", "%1.%2", "<w:isLgl/>"
)
CLAUSES += docx_level(2, "lowerLetter", "%1.%2(%3)", "<w:isLgl/>") + docx_level(3, "bullet", "*")
RESTART = (
    "<w:num w:numId='2'><w:abstractNumId w:val='0'/><w:lvlOverride w:ilvl='0'><w:startOverride "
    "w:val='7'/></w:lvlOverride></w:num>"
)


def test_numbers_of_legal_clauses_in_word() -> None:
    numbering = docx_numbering(CLAUSES, RESTART)
    items = [("Scope", 0), ("Rent", 1), ("flat", 1), ("dog", 3), ("End", 0), ("Law", 1), ("x", 2)]
    body = "".join(docx_item(text, level) for text, level in items)
    body += "<w:p><w:r><w:t>plain</w:t></w:r></w:p>" + docx_item("More", 0)
    body += docx_item("New", 0, 2) + docx_item("Next", 0, 2)
    lines = read(docx(body, numbering), "a.docx").text.replace("\n\n", "\n").split("\n")
    assert lines == [
        "Article I Scope", "1.1 Rent", "1.2 flat", "dog", "Article II End", "2.1 Law", "2.1(1) x",
        "plain", "Article III More", "Article VII New", "Article VIII Next",
    ]  # fmt: skip
    style = "<w:style w:styleId='H'><w:name w:val='heading 1'/><w:pPr><w:numPr><w:numId w:val='1'/>"
    styles = f"<w:styles {XMLNS}>{style}</w:numPr></w:pPr></w:style></w:styles>"
    level = docx_level(0, "decimal", "%1.", "<w:start w:val='3'/>")
    heading = "<w:p><w:pPr><w:pStyle w:val='H'/></w:pPr><w:r><w:t>Coal</w:t></w:r></w:p>"
    parts = {"word/styles.xml": styles, **docx_numbering(level)}
    titles = [section.title for section in read(docx(heading * 2, parts), "a.docx").sections]
    assert titles == ["3. Coal", "4. Coal"]


def test_numbers_of_word_without_a_start_and_with_levels_left_out() -> None:
    """Without a start, Word counts from 0; a level that is left out counts as one item."""
    first = docx_level(0, "1", "%1").replace("<w:start w:val='1'/>", "")
    levels = first + docx_level(1, "lowerLetter", "%2") + docx_level(2, "decimal", "%1.%2.%3")
    body = "".join(docx_item("x", level) for level in (0, 2, 1, 0))
    assert read(docx(body, docx_numbering(levels)), "a.docx").text == "0 x\n0.a.1 x\nb x\n1 x"


OUTLINE = (
    f"<office:document-styles {XMLNS}><office:styles><text:outline-style><text:outline-level-style "
    "text:level='1' style:num-format='1'/><text:outline-level-style text:level='2' "
    "style:num-format='1' text:display-levels='2'/></text:outline-style></office:styles>"
    "</office:document-styles>"
)
CONTINUED = (
    "<text:list text:style-name='L'>{0}</text:list><text:p>break</text:p>"
    "<text:list text:style-name='L' text:continue-numbering='true'>{0}</text:list>"
    "<text:list text:style-name='L'>{0}</text:list>"
)


def test_numbers_of_libreoffice() -> None:
    form = "style:num-format='1' style:num-suffix=')'"
    level = f"<text:list-level-style-number text:level='1' {form}/>"
    styles = f"<text:list-style style:name='L'>{level}</text:list-style>"
    item = "<text:list-item><text:p>x</text:p></text:list-item>"
    text = read(odt(CONTINUED.format(item), styles), "a.odt").text
    assert text.split("\n\n") == ["1) x", "break", "2) x", "1) x"]
    headings = (f"<text:h text:outline-level='{n}'>x</text:h>" for n in (1, 2, 2, 1, 2))
    document = read(odt("".join(headings), parts={"styles.xml": OUTLINE}), "a.odt")
    assert [s.title for s in document.sections] == ["1 x", "1.1 x", "1.2 x", "2 x", "2.1 x"]


LABELS = (
    "<sec><label>2.</label><title>Law</title><list list-type='order'><list-item>"
    "<label>(c)</label><p>x</p></list-item></list><list><list-item><p>y</p></list-item></list></sec>"
)
AUTO = "<a:p><a:pPr><a:buAutoNum type='{}'/></a:pPr><a:r><a:t>x</a:t></a:r></a:p>"
AUTOS = (AUTO.format("arabicParenR' startAt='3"),) * 2 + (
    AUTO.replace("AutoNum", "None").format(""),
    AUTO.format("alphaUcParenBoth"),
)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.rtf", r"{\rtf1 {\listtext\pard 1.\tab}a\par{\pntext\f0 2.\tab}b\par}", "1. a 2. b"),
        ("a.rtf", r"{\rtf1 {\listtext\f3 \'96\tab}a\par{\listtext \'e0)\tab}b}", "• a à) b"),
        ("a.rtf", r"{\rtf1 {\listtext\f0\bullet\tab}a}", "• a"),
        ("a.nxml", article(LABELS), "2. Law (c) x y"),
        ("a.pptx", pptx(shape("".join(AUTOS))), "3) x 4) x x (A) x"),
    ],
)
def test_numbers_and_labels_of_other_formats(name: str, content: str | bytes, text: str) -> None:
    assert " ".join(read(content, name).text.split()) == text


HEIGHTS: list[tuple[list[tuple[str, str]], str]] = [
    ([("10", ""), ("6", "sup"), (" and 10", ""), ("-3", "sup")], "10^6 and 10^-3"),
    ([("H", ""), ("2", "sub"), ("O and SO", ""), ("4", "sub"), ("2-", "sup")], "H2O and SO4^2-"),
    ([("note", ""), ("3", "sup"), (". The 4", ""), ("th", "sup"), (" x", "")], "note^3. The 4th x"),
    ([("x", ""), ("n+1", "sup"), (" a", ""), ("n-1", "sub")], "x^(n+1) a_(n-1)"),
    ([("101", ""), ("2", "sub"), (" is 5", "")], "101_2 is 5"),
    ([("2", ""), ("1", "sup"), ("/", ""), ("2", "sub"), (" miles", "")], "2 1/2 miles"),
    ([("3", "sup"), (" a note [", ""), ("[4]", "sup")], "3 a note [[4]"),
]


@pytest.mark.parametrize(("name", "number"), [*product(FIGURES, range(len(HEIGHTS)))])
def test_raised_and_lowered_figures(name: str, number: int) -> None:
    figures, expected = HEIGHTS[number]
    write, forms = FIGURES[name]
    of_height = dict(zip(("", "sup", "sub"), forms, strict=True))
    content = write("".join(of_height[height].format(text) for text, height in figures))
    assert read(content, name).text == expected


SHIFT = "<w:r><w:rPr><w:position w:val='{}'/></w:rPr><w:t>{}</w:t></w:r>"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", "<p>10<span style='vertical-align: super'>6</span> <span>H</span>"
         "<span style='vertical-align:sub'>2</span>O"),
        ("a.docx", docx(f"<w:p>{SHIFT.format(0, '10')}{SHIFT.format(8, '6')}"
         f"<w:r><w:t xml:space='preserve'> H</w:t></w:r>{SHIFT.format(-6, '2')}"
         f"{SHIFT.format(1, 'O')}</w:p>")),
        ("a.rtf", r"{\rtf1 10{\up6 6} H{\dn6 2}O}"),
        ("a.fb2", "<FictionBook><body><p>10<sup>6</sup> H<sub>2</sub>O</p></body></FictionBook>"),
        ("a.eml", "Content-Type: text/html\n\n10<sup>6</sup> H<sub>2</sub>O"),
        ("a.tex", r"\documentclass{a}\begin{document}$10^{6}$ H\textsubscript{2}O\end{document}"),
    ],
)  # fmt: skip
def test_text_that_is_shifted_is_raised_or_lowered(name: str, content: str | bytes) -> None:
    assert read(content, name).text.split("\n")[-1] == "10^6 H2O"


MATHML = [
    ("<mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac>", "2 1/2"),
    ("<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mi>b</mi></mfrac>", "(a+1)/b"),
    ("<mfrac><mn>1</mn><mrow><mn>2</mn><mi>a</mi></mrow></mfrac>", "1/(2a)"),
    ("<mlongdiv><mn>3</mn><mn>435.3</mn><msgroup><mn>12</mn><mn>10</mn></msgroup></mlongdiv>",
     "3 435.3 12 10"),
    ("<msubsup><mi>x</mi><mn>1</mn><mi>n</mi></msubsup><mi>a</mi>", "x1^n a"),
    ("<mfrac linethickness='0'><mi>n</mi><mi>k</mi></mfrac>", "n over k"),
    ("<munder><mi>lim</mi><mi>n</mi></munder><msup><mi>x</mi><mo>∞</mo></msup>", "lim_n x^∞"),
    ("<mrow><mo>−</mo><mn>1</mn><mn>2</mn><mi>x</mi></mrow>", "−12x"),
    ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", "√(x+1)"),
    ("<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo></mrow><mi>n</mi></munderover>", "∑_(i=)^n"),
    ("<semantics><msub><mi>H</mi><mn>2</mn></msub><annotation>H_2</annotation></semantics>", "H2"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "text"), MATHML)
def test_formulas_of_mathml_are_text(source: str, text: str) -> None:
    assert read(f"<html><p>Sum <math>{source}</math>.</p></html>", "a.html").text == f"Sum {text}."
    assert read(article(f"<p>Sum <math>{source}</math>.</p>"), "a.nxml").text == f"Sum {text}."
    math = f"<math xmlns='http://www.w3.org/1998/Math/MathML'>{source}</math>"
    parts = {"Object 1/content.xml": math}
    frame = "<text:p>Sum <draw:object xlink:href='./Object 1'/>.</text:p>"
    document = read(odt(frame, parts=parts), "a.odt")
    assert (document.text, document.losses) == (f"Sum {text}.", ())


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<m:f><m:num>{a}</m:num><m:den>{b}</m:den></m:f>", "a/b"),
        ("<m:sSup><m:e>{a}</m:e><m:sup>{b}</m:sup></m:sSup>", "a^b"),
        ("<m:sSub><m:e>{a}</m:e><m:sub>{b}</m:sub></m:sSub>", "a_b"),
        ("<m:sSup><m:e><m:f><m:num>{a}</m:num><m:den>{b}</m:den></m:f></m:e><m:sup>{a}</m:sup>"
         "</m:sSup>", "(a/b)^a"),
        ("<m:rad><m:deg>{a}</m:deg><m:e>{b}</m:e></m:rad>", "(b)^(1/a)"),
        ("<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e>{a}</m:e></m:d>",
         "[a]"),
    ],
)  # fmt: skip
def test_formulas_of_office_are_text(source: str, text: str) -> None:
    runs = {name: f"<m:r><m:t>{name}</m:t></m:r>" for name in "ab"}
    math = f"<m:oMath>{source.format(**runs)}</m:oMath>"
    assert read(docx(f"<w:p>{math}</w:p>"), "a.docx").text == text
    assert read(pptx(shape(f"<a:p><a:m>{math}</a:m></a:p>")), "a.pptx").text == text


TEX = "<tex-math><![CDATA[{}]]></tex-math>"
BOTH = f"<alternatives>{TEX.format('$x^{2}$')}<math><mn>7</mn></math></alternatives>"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (TEX.format(r"$\frac{1}{2}$"), "1/2"),
        (TEX.format(r"\documentclass{x}\begin{document}$$\mu _{1}$$\end{document}"), "μ_1"),
        (TEX.format(r"\begin{align}a&=b\\c&=x^{\alpha}y\end{align}"), "a =b; c =x^α y"),
        (TEX.format(r"$\odd{x}$"), r"$\odd{x}$"),
        (f"{BOTH}; {BOTH}", "x^2; x^2"),
        ("39.1<xref ref-type='table-fn'>c</xref>, a<xref ref-type='fn'>1</xref>", "39.1^c, a1"),
        ("39.1<xref ref-type='fn'><sup>c</sup></xref>", "39.1^c"),
    ],
)
def test_formulas_and_marks_of_articles(source: str, text: str) -> None:
    assert read(article(f"<p>{source}</p>"), "a.nxml").text == text
