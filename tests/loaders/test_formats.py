"""Every format but PDF: what its own writer wrote is found, or told as lost."""

from __future__ import annotations

import io
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stories import TABLES, WRITERS, Story

from leporello import Document, Span
from leporello.loaders import load_bytes
from leporello.text.outline import place_of_span

ROWS = [["Item", "Amount"], ["Rent of the flat", "900"], ["Gas & oil", "30.5"]]
STORIES = {
    "short": Story([(1, "Report", ["One paragraph."])]),
    "nested": Story(
        [
            (1, "The Great Report", ["It begins here, & ends <there>.", "Then more of it."]),
            (2, "Method of Work", ["We counted 50% of $3 in {braces} #1 a_b."]),
            (3, "Details", ["Smaller still."]),
            (2, "Results", ["The end “quoted” – naïve café."]),
            (1, "Last Part", ["Grüße, 文字 и слова 😀."]),
        ],
        ROWS,
    ),
    "long": Story(
        [
            (1 + i % 3, f"Heading {i} of many", [f"Text {i} {j}. " * 9 for j in range(5)])
            for i in range(40)
        ]
    ),
}
HEADED = (".docx", ".odt", ".epub", ".html", ".md", ".rst", ".tex", ".nxml", ".xml", ".ipynb")


def read(made: str | bytes, name: str) -> Document:
    """Returns what the loader of a file's format makes of it."""
    return load_bytes(made.encode() if isinstance(made, str) else made, Path(name))


def recovered(document: Document, words: list[str]) -> float:
    """Returns which share of the words is in the text."""
    missing = Counter(words) - Counter(document.text.split())
    return 1 - missing.total() / len(words)


@pytest.mark.parametrize(("suffix", "name"), [*product(WRITERS, STORIES)])
def test_a_story_is_read_as_it_was_written(suffix: str, name: str) -> None:
    """No word is lost, and headings have their levels, whatever the format."""
    story = STORIES[name]
    document = read(WRITERS[suffix](story), f"a{suffix}")
    assert recovered(document, story.words()) >= 0.99
    assert not [loss for loss in document.losses if not loss.furniture]
    if suffix in HEADED:
        told = [section.title for section in document.sections]
        assert told == [heading for _, heading, _ in story.sections]
        levels = [section.level for section in document.sections]
        low = levels[0] - 1
        assert [level - low for level in levels] == [level for level, _, _ in story.sections]
        starts = [document.text[s.start :].lstrip("#\\ ") for s in document.sections]
        assert all(t.startswith(s.title) for t, s in zip(starts, document.sections, strict=True))


@pytest.mark.parametrize("suffix", TABLES)
def test_a_table_is_read_row_by_row(suffix: str) -> None:
    """Each row says what its cells are, and each cell where it stands."""
    document = read(TABLES[suffix](ROWS), f"a{suffix}")
    if suffix == ".json":
        assert document.text.splitlines()[2] == "[1][0]: Rent of the flat"
        return
    assert document.text.splitlines() == [
        "Item\tAmount",
        "Item: Rent of the flat\tAmount: 900",
        "Item: Gas & oil\tAmount: 30.5",
    ]
    at = document.text.index("900")
    place = "row 2" if suffix in (".csv", ".tsv") else "Costs!B2"
    assert place_of_span(document, Span(at, at + 3)) == place


WORD = st.text(st.characters(categories=("L", "Nd")), min_size=1, max_size=8)
LINE = st.lists(WORD, min_size=1, max_size=6).map(" ".join)
SECTION = st.tuples(st.just(1), LINE, st.lists(LINE, max_size=3))
LISTS = st.lists(st.tuples(WORD, WORD, WORD), max_size=3)


@pytest.mark.parametrize("suffix", WRITERS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(sections=st.lists(SECTION, min_size=1, max_size=3), rows=LISTS)
def test_whatever_is_written_is_in_the_text(
    suffix: str, sections: list[tuple[int, str, list[str]]], rows: list[list[str]]
) -> None:
    """Texts in any script, with any table."""
    story = Story(sections, rows)
    document = read(WRITERS[suffix](story), f"a{suffix}")
    found = "".join(document.text.split())
    assert all(word in found for word in story.words())


@settings(max_examples=20, deadline=None)
@given(sheets=st.lists(st.tuples(LISTS.filter(bool), st.booleans()), min_size=1, max_size=4))
def test_sheets_are_in_the_text_or_lost(sheets: list[tuple[list[list[str]], bool]]) -> None:
    """What is hidden is told with its size; all else is found."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["always"])
    for number, (rows, hidden) in enumerate(sheets):
        sheet = book.create_sheet(f"S{number}")
        sheet.sheet_state = "hidden" if hidden else "visible"
        for row in rows:
            sheet.append([f"'{cell}" for cell in row])
    buffer = io.BytesIO()
    book.save(buffer)
    document = read(buffer.getvalue(), "a.xlsx")
    lost = {loss.place: loss.characters for loss in document.losses}
    for number, (rows, hidden) in enumerate(sheets):
        words = [cell for row in rows for cell in row]
        if hidden:
            assert lost[f"S{number}"] >= sum(map(len, words))
        else:
            assert f"S{number}" not in lost
            assert all(word in document.text for word in words)
