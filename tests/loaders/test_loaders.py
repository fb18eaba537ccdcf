"""Tests of text, Markdown, subtitles and HTML: texts, sections and faults."""

import random

import pytest
from contents import read

from leporello import Document
from leporello.core.errors import UserError
from leporello.text.outline import heading


def named_spans(document: Document) -> list[tuple[str, str]]:
    """Returns each section's title and text, or each place's name and text."""
    spans = [(s.title, s.start, s.end) for s in document.sections]
    spans = spans or [(p.name, p.start, p.end) for p in document.places]
    return [(name, document.text[start:end]) for name, start, end in spans]


def test_text_is_kept_to_the_character() -> None:
    text = "  one\r\ntwo\rthree\n\n\x0cfour\t\u2028 é😀"
    document = read(text, "a.TXT")
    assert document.text == text
    assert (document.id, document.title, document.sections) == ("a.TXT", "a", ())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_byte_order_marks_are_obeyed_and_left_out(encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    assert read(f"{mark}naïve 文".encode(encoding), "a.txt").text == "naïve 文"


@pytest.mark.parametrize(
    ("content", "text", "lost"),
    [
        ("naïve é".encode() * 9 + b"\xff", "naïve é" * 9 + "�", 1),
        (b"\xff Klucz ma " + "źródło, 鍵".encode() + b" \xe9\n", "� Klucz ma źródło, 鍵 �\n", 2),
        (b"\xff\xfea\0b", "a�", 1),
        (b"\xef\xbb\xbfcaf\xe9 noir \xff", "caf� noir �", 2),
        ("a � of its own, " * 99 + "\0", "a � of its own, " * 99 + "�", 1),
    ],
)
def test_broken_bytes_are_losses(content: bytes | str, text: str, lost: int) -> None:
    document = read(content, "a.txt")
    assert document.text == text
    [loss] = document.losses
    assert (loss.what, loss.characters) == ("undecodable bytes", lost)


@pytest.mark.parametrize(
    ("name", "content", "note"),
    [
        ("a.pdf", "only text", "a.pdf was read as Text, not as Pdf, the format of its suffix"),
        ("a.txt", "<!DOCTYPE html><p>only text", "a.txt was read as Html, not as Text"),
        ("a", "<html><p>only text", "a was read as Html"),
    ],
)
def test_a_wrong_suffix_is_noted(name: str, content: bytes | str, note: str) -> None:
    document = read(content, name)
    assert document.text.strip() == "only text"
    assert document.notes[0].startswith(note)


@pytest.mark.parametrize("name", ["a.txt", "a.odd", "a.pdf", "a.md", "a.html"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\xff\xfe\xfd\0", "looks like a zip archive"),
        (b"\x89PNG\r\n\x1a\n\0", "looks like binary data"),
        (bytes(range(256)), "looks like binary data"),
        (random.Random(1).randbytes(4096), "looks like binary data"),
        (b"", "the file has no text"),
        (b" \n\t ", "the file has no text"),
    ],
)
def test_files_lacking_text_are_refused(name: str, content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(content, name)


def test_markdown_headings_become_nested_sections() -> None:
    text = "preface\n\n# One #\na\n## Two\nb\n\nThree\nlines\n---\nc\n\nFour\n===\nd"
    document = read(text, "a.md")
    assert document.text == text
    assert named_spans(document) == [
        ("One", "# One #\na\n## Two\nb\n\nThree\nlines\n---\nc\n\n"),
        ("Two", "## Two\nb\n\n"),
        ("Three lines", "Three\nlines\n---\nc\n\n"),
        ("Four", "Four\n===\nd"),
    ]
    assert document.title == "One"
    assert heading(document, text.index("\nc")) == "One > Three lines"
    assert heading(document, 0) == ""


@pytest.mark.parametrize(
    "text",
    [
        "```\n# no\n~~~\n# no\n````\nend",
        "~~~ python\n# no",
        "    # indented",
        "#hashtag",
        "####### seven",
        "---\ntitle: x\n---\ntext",
        "- item\n---\ntext",
        "> quote\n---\ntext",
        "text\n\n---\n\ntext",
        "| a |\n|---|\n| b |",
        "***\n---",
    ],
)
def test_lines_that_only_look_like_headings(text: str) -> None:
    assert read(text, "a.md").sections == ()


SRT = (
    "1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Hello</i> {laughs}\r\n{\\an8}there\r\n\r\n"
    "2\r\n00:00:03,000 --> 00:00:04,000\r\n\r\n"
    "3\r\n01:00:05,000 --> 01:00:06,000  X1:1 Y1:2\r\nIn\r\n\r\n1984\r\n"
)


def test_subrip_cues_become_text_and_places() -> None:
    document = read(SRT, "film.srt")
    assert document.text == "Hello {laughs}\nthere\n\nIn\n1984"
    assert named_spans(document) == [
        ("00:00:01", "Hello {laughs}\nthere\n"),
        ("00:00:03", "\n"),
        ("01:00:05", "In\n1984"),
    ]


def test_webvtt_comments_names_and_inline_times_are_not_text() -> None:
    text = (
        "\ufeffWEBVTT - a film\n\nSTYLE\n::cue {}\n\nNOTE to self\n\nintro\n"
        "00:01.000 --> 00:02.000 align:start\n<v Ann>Hi &amp; you</v>\n"
        "<00:00:01.200><c> to</c><00:00:01.700><c> all</c>\n\nNOTE more\n\nsecond\n"
        "00:03.000 --> 01:00:04.000\na < b\n"
    )
    document = read(text, "film.vtt")
    assert document.text == "Ann: Hi & you\nto all\na < b"
    assert document.places[1].name == "00:00:03"


@pytest.mark.parametrize(
    ("cue", "text"),
    [
        ("<v Greta>The ferry sank.", "Greta: The ferry sank."),
        ("<v.loud.first Greta>The <i>ferry</i> sank.</v>", "Greta: The ferry sank."),
        ("<v Greta Mole>The ferry\nsank.", "Greta Mole: The ferry\nsank."),
        ("<v Greta>It sank.</v> <v Otto>In 1932.</v>", "Greta: It sank.\nOtto: In 1932."),
        ("- <v Greta>It sank.\n- <v Otto>In 1932.", "- Greta: It sank.\n- Otto: In 1932."),
        ("<i><v Greta>It sank.</v></i>", "Greta: It sank."),
        (
            "<v Greta>It <00:02.000><c.yellow>sank</c> in <lang en>May</lang>.",
            "Greta: It sank in May.",
        ),
        ("<v>It sank.</v>", "It sank."),
        ("<ruby>沈<rt>chin</rt>没<rt>botsu</rt></ruby>", "沈(chin)没(botsu)"),
        ("<ruby>沈<rt>chin</ruby>だ", "沈(chin)だ"),
        ("One<br>two<br/>three", "One\ntwo\nthree"),
    ],
)
@pytest.mark.parametrize("name", ["film.vtt", "film.srt"])
def test_speakers_and_readings_are_text(name: str, cue: str, text: str) -> None:
    blocks = (
        "WEBVTT\n\nSTYLE\n::cue(v[voice=Ann]) {}\n\nREGION\nid:x\n\n"
        f"NOTE <v Ann>not said\n\n00:01.000 --> 00:02.000\n{cue}\n\nNOTE\nmore\n\n"
        "00:03.000 --> 00:04.000\n<v Ann>End."
        if name == "film.vtt"
        else f"1\n00:00:01,000 --> 00:00:02,000\n{cue}\n\n2\n00:00:03,000 --> 00:00:04,000\n"
        "<v Ann>End.\n"
    )
    document = read(blocks, name)
    assert named_spans(document) == [("00:00:01", f"{text}\n"), ("00:00:03", "Ann: End.")]


@pytest.mark.parametrize(
    ("cue", "text"),
    [
        ("<font color=red>GRETA:</font> It sank.", "GRETA: It sank."),
        ("{\\an8}[Greta] It sank.", "[Greta] It sank."),
        ("<Greta> It sank.", "<Greta> It sank."),
        ("a &lt; b < c > d", "a &lt; b < c > d"),
        ("<b>It</b> <u>sank</u><s>.</s>", "It sank."),
    ],
)
def test_only_markup_is_removed_from_subrip(cue: str, text: str) -> None:
    content = f"1\n00:00:01,000 --> 00:00:02,000\n{cue}\n"
    assert read(content, "film.srt").text == text


@pytest.mark.parametrize(
    ("name", "content", "spans"),
    [
        (
            "a.vtt",
            "WEBVTT\n\n00:01.000 --> 00:02.000\n\nIt sank.\n\n2\n00:02.000 --> 00:03.000\n\n"
            "NOTE none\n\n3\n00:03.000 --> 00:04.000\n\nEnd.\n",
            [("00:00:01", "It sank.\n"), ("00:00:02", "\n"), ("00:00:03", "End.")],
        ),
        ("a.srt", "1\n00:00:01 --> 00:00:02\nIt sank.\n\n2\n00:00:02 --> 00:00:03\nEnd.\n",
         [("00:00:01", "It sank.\n"), ("00:00:02", "End.")]),
        (
            "b.vtt",
            "WEBVTT\n\n00:01.000 --> 00:02.000\n \nit<00:00:01.500><c> sank</c>\n\n"
            "00:02.000 --> 00:02.010\nit sank\n \n\n00:02.010 --> 00:04.000\nit sank\n"
            "in<00:00:03.000><c> May</c>\n",
            [("00:00:01", "it sank\n"), ("00:00:02", "in May")],
        ),
    ],
    ids=["text below a blank line", "times without fractions", "captions that roll up"],
)  # fmt: skip
def test_cues_of_careless_files(name: str, content: str, spans: list[tuple[str, str]]) -> None:
    assert named_spans(read(content, name)) == spans


@pytest.mark.parametrize(
    ("name", "content", "text", "count"),
    [
        ("a.srt", "1\n00:00:01 -> 00:00:02\nHi\n\n2\n00:00:03 --> 00:00:04\n3 -> 4", "3 -> 4", 1),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n\n00:03.000 -->\nlost\n", "Hi", 1),
        ("b.srt", "1\n00:00:01,000 --> 00:00:02,000\nHi -> ho", "Hi -> ho", 0),
    ],
)  # fmt: skip
def test_cues_without_valid_times_are_losses(
    name: str, content: str, text: str, count: int
) -> None:
    document = read(content, name)
    assert document.text == text
    assert sum(loss.count for loss in document.losses) == count


def test_html_has_the_line_breaks_of_a_browser() -> None:
    page = (
        "<html><head><title>T &amp; x</title><style>p {}</style></head><body>loose\n text"
        "<p>on<b>e</b> <i>two</i> three<br>four</p><ul><li>a<li>b</ul>"
        "<table><tr><td>x<td> y<tr><td>1<td>2</table><script>if (a<b) '</p>'</script>"
        "<pre>\n  kept\n    so</pre>caf&eacute; 1 &lt; 2 < 3"
    )
    document = read(page, "a.html")
    assert document.title == "T & x"
    assert document.text == (
        "loose text\n\none two three\nfour\n\na\nb\n\nx\ty\n1\t2\n\n"
        "\n  kept\n    so\n\ncafé 1 < 2 < 3"
    )


def test_html_headings_become_sections_with_exact_offsets() -> None:
    page = (
        "a<h1>One <b>bold</b></h1>b<ul><li>c<li><h2>In list</h2>d</ul>"
        "<table><tr><td><h2>Cell</h2>e<td>f</table><h2></h2><h2>Open<p>g<h3><span>Last</span>"
    )
    document = read(page, "a.htm")
    assert [s.title for s in document.sections] == ["One bold", "In list", "Cell", "Open", "Last"]
    assert all(text.startswith(title) for title, text in named_spans(document))
    assert heading(document, document.text.index("e\tf")) == "One bold > Cell"


@pytest.mark.parametrize(
    ("declared", "encoding"),
    [
        ("<meta charset=windows-1252>", "cp1252"),
        ("<meta charset='iso-8859-1'>", "cp1252"),
        ('<meta http-equiv=Content-Type content="text/html; charset=shift_jis">', "cp932"),
        ("<?xml version='1.0' encoding='gb2312'?>", "gb18030"),
        ("", "utf-8"),
        ("<meta charset=iso-8859-1>", "utf-8-sig"),
    ],
)
def test_html_declares_its_charset(declared: str, encoding: str) -> None:
    text = "日本" if encoding in ("cp932", "gb18030") else "“é”"
    assert read(f"{declared}<p>{text}".encode(encoding), "a.html").text == text


@pytest.mark.parametrize("name", ["klingon", "hex"])
def test_an_unknown_charset_is_ignored(name: str) -> None:
    assert read(f"<meta charset={name}><p>é", "a.html").text == "é"


def test_html_elements_without_text_are_losses() -> None:
    page = '<p>A<img src=x alt="chart of rents"> b<img src=y><img alt=""><iframe src=z></iframe>'
    document = read(page + "<script>write('more')</script>", "a.html")
    assert document.text == "A chart of rents b"
    reported = {(loss.what, loss.count) for loss in document.losses}
    assert reported == {("image", 1), ("frame", 1), ("script", 1)}
    with pytest.raises(UserError, match=r"has no text .*is not run, and may contain the text"):
        read("<html><div id=app></div><script>go()</script>", "b.html")
