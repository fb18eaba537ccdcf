"""Tests of headings in plain text, lines like headings, levels, and places of spans for people."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello import Document, Section, Span
from leporello.core.records import Place
from leporello.loaders.files import load_bytes
from leporello.text.headings import headings, is_bare, label_of, name_of
from leporello.text.outline import cited, heading, place_of_span

BODY = (
    "The river rose in the night, and nobody in the lower town had been told.\n"
    "In the morning the ferry lay on the quay, and its chain was gone for good.\n"
)


def outline(text: str) -> str:
    """Returns the titles, each after one `>` per title above it."""
    sections = headings(Document("d", text))
    return " | ".join(">" * (section.level - 1) + section.title for section in sections)


def document(*parts: str) -> str:
    """Joins the parts, also of `first | second`, with blank lines; each `*` is text."""
    separate = " | ".join(parts).split(" | ")
    return "\n\n".join(BODY.strip() if part == "*" else part for part in separate) + "\n"


LINES = BODY.replace("\n", " ") * 3
FORMS = {
    "markdown": (
        "# Ferries | * | ## 1 Ropes ## | * | ### Knots | * | ## Chains | *",
        "Ferries | >1 Ropes | >>Knots | >Chains"),
    "underlines": (
        "Ferries\n======= | * | Ropes\n----- | * | Chains\n------ | *",
        "Ferries | >Ropes | >Chains"),
    "underlines and overlines": (
        "=====\nTides\n===== | * | Ropes\n~~~~~ | * | 2.  Knots\n^^^^^^^^^ | *",
        "Tides | >Ropes | >>2.  Knots"),
    "numbers": (
        "1 Ropes | * | 1.1 Knots | * | 1.1.1 Bends | * | 2 Chains | *",
        "1 Ropes | >1.1 Knots | >>1.1.1 Bends | 2 Chains"),
    "numbers without blank lines": (
        f"1 Ropes\n{BODY}1.1 Knots\n{BODY}2 Chains\n{BODY}", "1 Ropes | >1.1 Knots | 2 Chains"),
    "RFC": (
        "1.  Ropes | * |    1.1. Knots | * | 2.  Chains | * | Appendix A.  Proofs | * |"
        " A.1.  Lengths | *",
        "1.  Ropes | >1.1. Knots | 2.  Chains | Appendix A.  Proofs | >A.1.  Lengths"),
    "Roman numbers": (
        "I. ROPES | * | A. Knots | * | B. Bends | * | II. CHAINS | * | A. Links | * | B. Rust | *",
        "I. ROPES | >A. Knots | >B. Bends | II. CHAINS | >A. Links | >B. Rust"),
    "Roman numbers alone": ("I | * | II | * | III | *", "I | II | III"),
    "chapters": (
        "CHAPTER IV | * | CHAPTER V | * | Chapter 6: The Flood | *",
        "CHAPTER IV | CHAPTER V | Chapter 6: The Flood"),
    "parts": (
        "PART ONE | CHAPTER I. | * | CHAPTER II. | * | PART TWO | CHAPTER I. | *",
        "PART ONE | >CHAPTER I. | >CHAPTER II. | PART TWO | >CHAPTER I."),
    "other languages": (
        "PREMIÈRE PARTIE | * | Deuxième partie | * | Chapitre 3 : La crue | *",
        "PREMIÈRE PARTIE | Deuxième partie | >Chapitre 3 : La crue"),
    "titles below chapters": (
        "CHAPTER ONE | THE FLOOD | * | Chapter 2\n\nIntroduction | * | 2.1 Rain | *",
        "CHAPTER ONE THE FLOOD | Chapter 2 Introduction | >2.1 Rain"),
    "known names": (
        "Abstract | * | Introduction | * | CONCLUSIONS | * | References: | *",
        "Abstract | Introduction | CONCLUSIONS | References:"),
    "names beside and inside chapters": (
        "Abstract | * | Chapter 1: Ropes | * | Introduction | * | Bibliography | *",
        "Abstract | Chapter 1: Ropes | >Introduction | Bibliography"),
    "capitals": ("THE RIVER | * | THE FERRY OF 1871 | *", "THE RIVER | THE FERRY OF 1871"),
    "a manual's page": (
        "NAME\n    ferry - crosses the river.\n\nSYNOPSIS\n    ferry [-r] is how it is called.",
        "NAME | SYNOPSIS"),
    "paragraphs of one line": (
        f"Ropes | {LINES} | \tKnots and bends | {LINES} | A chain | {LINES}",
        "Ropes | >Knots and bends | A chain"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_forms_of_headings(form: str, line_end: str) -> None:
    text, expected = FORMS[form]
    assert outline(document(text).replace("\n", line_end)) == expected


KNOWN = document("1 Introduction | * | 2 Ropes | * | {} | * | 3 Chains | *")
FALSE = {
    "contents with leaders": "1 Introduction ..... 5\n2 Ropes . . . . . 7\n3 Chains …… 12",
    "contents with pages": "1 Introduction 5\n1.1 Rain 6\n2 Ropes 7\n3 Chains 12",
    "contents without pages": "1 Introduction\n1.1 Rain\n1.2 Snow\n2 Ropes\n2.1 Knots\n3 Chains",
    "contents, spaced": "1 Introduction\n\n1.1 Rain\n\n2 Ropes\n\n3 Chains\n\n4 Ends",
    "a list": "1. Loosen the knot\n2. Pull the chain\n3. Wait for the tide",
    "a list of sentences": "1. The knot is loosened.\n\n2. The chain is pulled.\n\n3. We wait.",
    "a bracketed list": "1) Loosen the knot\n\n2) Pull the chain",
    "an indented list": "    3. Wait for the tide\n\n    4. Cross",
    "a sentence": "3 men were drowned in the night, and a fourth was never found again.",
    "a wrapped sentence": "3 Men were drowned in the night of the flood, and one was never\nfound.",
    "a date": "16 November 2006",
    "a year": "2006 Flood",
    "shouting": "“STOP!” HE CRIED.\n\nNOBODY HEARD HIM, AND NOBODY CAME TO HELP HIM,"
    " NOT EVEN THE DOG OF THE MILLER, OR HIS WIFE",
    "a caption": "Figure 3: The Ferry\n\nTABLE IV\n\nTable 2. Tides of the River",
    "fenced code": "```\n# 3 Chains\n\n3 Chains\n\nCHAPTER I\n```",
    "indented code": "    # comment\n    3.1 = x",
    "comments": "# first, this\n# then, that\n# and this",
    "a command": "# apt-get install ferry",
    "a table": "Name    Length\n------  ------\nrope    3\nchain   4",
    "a rule": "The flood was over by then.\n-----------------------------------",
    "a mention": "as told in\nChapter 3. It was the flood, and not the fog.",
    "a section that is spoken of": "Section 3 describes the chains.",
    "part of": "Part of the chain was found",
    "quotes": "> # Not mine",
}


@pytest.mark.parametrize("kind", FALSE)
def test_lines_that_only_look_like_headings(kind: str) -> None:
    assert outline(KNOWN.format(FALSE[kind])) == "1 Introduction | 2 Ropes | 3 Chains"


def test_contents_are_one_section() -> None:
    entries = "1 Introduction\n1.1 Rain\n2 Ropes\nBibliography"
    body = "1 Introduction | * | 1.1 Rain | * | 2 Ropes | * | Bibliography | *"
    text = document("Contents", entries, body)
    assert outline(text) == "Contents | 1 Introduction | >1.1 Rain | 2 Ropes | Bibliography"


def test_a_screenplay_has_no_headings() -> None:
    talk = "INT. FERRY - NIGHT\n\nANN\nWhere is the chain?\n\nBEN\nGone.\n\nANN\nGone where?\n\n"
    once = "SERGEANT\nStop there!\n\nBEN\nNever!\n\nANN\nThen go.\n\nCUT TO:\n\n"
    assert outline((talk + once) * 3) == ""


def test_page_headers_are_not_headings() -> None:
    page = "RFC 9999\n\n" + BODY + "\nDoe      [Page 7]\n\f\n"
    twice = document("Chapter 1: Ropes", page, "Introduction", page, "Introduction", page)
    text = document("Chapter 1: Ropes", page * 3, twice, "Chapter 2: Chains", page)
    assert outline(text) == "Chapter 1: Ropes | >Introduction | Chapter 2: Chains"


# MuLD's theses, whose HTML headings were converted to `#`; the first lacks one `#`


def test_a_thesis_of_muld() -> None:
    """Contents are one section, and the first heading has the level of its siblings."""
    entries = "-    1 Introduction\n-    2 Ropes\n    -    2.1 Knots"
    formula = "  -- -------- -- -------\n     @xmath      (1.1)\n  -- -------- -- -------"
    text = document(
        "# Acknowledgements | * | ###### Contents",
        entries,
        "## Chapter 1 Introduction | * | ### 1.1 Rain | * | ###### Theorem 1.1 | *",
        f"## Chapter 2 Ropes | * | {formula} | *",
    )
    assert outline(text) == (
        "Acknowledgements | >>Contents | Chapter 1 Introduction | "
        ">1.1 Rain | >>Theorem 1.1 | Chapter 2 Ropes"
    )
    shifted = outline(document("# Ropes | * | ## 1 Knots | * | ## 2 Bends | *"))
    assert shifted.startswith("Ropes |")


PIECES = (
    "1 Foo\n", "1.1 Foo\n", "2 Bar\n", "# A\n", "## B\n", "Abstract\n", "====\n", "---\n",
    "CHAPTER I\n", "Part 2\n", "I\n", "A.1 Foo\n", "ALL CAPS\n", "text.\n", "\n", "\n", "\r", "\f",
    "```\n", "x" * 130, "\ufeff", "\ud800", "\u2028",
    "1 Foo ... 3\n", "   ", "\t", "猫\n", "Contents\n", " 12\n", "\x00",
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_sections_are_an_outline_of_any_text(text: str) -> None:
    sections = headings(Document("d", text))
    starts = {0}
    for line in text.splitlines(keepends=True):
        starts.add(max(starts) + len(line))
    open_: list[Section] = []
    for section in sections:
        while open_ and open_[-1].end <= section.start:
            open_.pop()
        assert all(section.level > outer.level for outer in open_)
        assert all(section.end <= outer.end for outer in open_)
        assert section.start in starts
        assert section.start < section.end <= len(text)
        open_.append(section)
    assert [s.start for s in sections] == sorted({s.start for s in sections})
    assert {s.level for s in sections} == set(range(1, 1 + len({s.level for s in sections})))


def test_a_heading_without_text_is_bare() -> None:
    bare = Document("d", document("Chapter 1: Ropes | 1.1 Knots | * | 1.2 Bends | *"))
    assert [is_bare(bare.text, *pair) for pair in pairwise(headings(bare))] == [True, False]


def test_headings_of_a_loader_are_used() -> None:
    source = "# Ferries\n\nText.\n\nRopes and\nknots\n---\n\nText.\n\n1 Not a heading\n"
    loaded = load_bytes(source.encode(), Path("a.md"))
    assert [s.title for s in headings(loaded)] == ["Ferries", "Ropes and knots"]


@pytest.mark.parametrize(
    ("title", "word", "path", "remainder"),
    [
        ("1.2 Foo", "", (1, 2), "Foo"),
        ("Chapter 3: Foo", "chapter", (3,), "Foo"),
        ("CHAPTER FORTY-SEVEN", "chapter", (47,), ""),
        ("Book the Third", "part", (3,), ""),
        ("Appendix B.2 Foo", "appendix", (2, 2), "Foo"),
        ("XIV. Foo", "", (14,), "Foo"),
        ("Zweites Kapitel", "chapter", (2,), ""),
        ("B.1 Foo", "", (2, 1), "Foo"),
    ],
)
def test_labels(title: str, word: str, path: tuple[int, ...], remainder: str) -> None:
    """Labels before a heading's words are read in figures, letters and words."""
    label = label_of(title)
    assert label is not None
    assert (label.word, label.path, label.title) == (word, path, remainder)


def test_a_name_is_a_title_without_label_and_marks() -> None:
    titles = "1 Introduction", "**INTRODUCTION**", "Chapter 1: Introduction.", "Introduction {#i}"
    assert {*map(name_of, titles)} == {"introduction"}


_SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=12)


@given(_SPANS, st.integers(0, 40))
def test_places_and_headings_surround_a_span(spans: list[tuple[int, int]], offset: int) -> None:
    places = tuple(Place(f"{n}", start, start + size) for n, (start, size) in enumerate(spans))
    sections = tuple(Section(place.name, place.start, place.end) for place in places)
    document = Document("a", "x" * 50, places=places, sections=sections)
    around = [p for p in sorted(places, key=lambda p: p.start) if p.start <= offset < p.end]
    names = [place.name for place in around]
    assert heading(document, offset) == " > ".join(names)
    location = place_of_span(document, Span(offset, offset + 1))
    assert location == (f"{' '.join(names)}, {' > '.join(names)}" if names else "")


def test_without_places_and_headings_characters_are_counted() -> None:
    document = Document("a.pdf", "x" * 9, places=(Place("p. 1", 0, 4), Place("p. 2", 4, 8)))
    assert cited(document, Span(1, 2)) == "a.pdf p. 1"
    assert cited(document, Span(1, 5)) == "a.pdf p. 1 to p. 2"
    assert cited(document, Span(8, 9)) == "a.pdf characters 8–9"
    sections = (Section("0", 0, 9), Section("3", 3, 6, 2), Section("6", 6, 9, 2))
    nested = Document("a.md", "x" * 9, sections=sections)
    assert cited(nested, Span(4, 8)) == "a.md 0 > 3 to 6"
