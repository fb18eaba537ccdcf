"""Tests of the chunker Sections."""

import pytest

from leporello import Document
from leporello.chunkers import Paragraphs, Sections
from leporello.core.notes import collect_notes

THESIS = """A thesis

# Ropes

On ropes.

## Knots

One knot.

Another knot.

### Bends

A bend is a knot.

# Chains

## Links

A link.
"""
NOTE = "no headings found: divided at paragraphs"


def chunks(chunker: Sections, text: str) -> list[str]:
    document = Document("d", text)
    with collect_notes() as notes:
        spans = list(chunker.chunk(document))
    assert notes == []
    return [document.chunk(span.start, span.end).text for span in spans]


def test_a_section_is_a_chunk_with_its_heading() -> None:
    assert chunks(Sections(), THESIS) == [
        "A thesis",
        "# Ropes\n\nOn ropes.",
        "## Knots\n\nOne knot.\n\nAnother knot.\n\n### Bends\n\nA bend is a knot.",
        "# Chains\n\n## Links\n\nA link.",
    ]


def test_sections_are_divided_down_to_the_level() -> None:
    for level, headings in ((1, ["# Ropes"]), (9, ["# Ropes", "## Knots", "### Bends"])):
        firsts = [text.splitlines()[0] for text in chunks(Sections(level=level), THESIS)]
        assert firsts == ["A thesis", *headings, "# Chains"]


def test_a_heading_without_text_is_joined_to_its_first_subsection() -> None:
    assert chunks(Sections(level=2), THESIS)[-1] == "# Chains\n\n## Links\n\nA link."
    text = "# Ropes\n\n## Knots\n\n### Bends\n\nA bend.\n\n## Ends\n\nAn end.\n"
    assert chunks(Sections(level=3), text) == [
        "# Ropes\n\n## Knots\n\n### Bends\n\nA bend.",
        "## Ends\n\nAn end.",
    ]


def test_long_sections_are_divided_only_with_split_long() -> None:
    text = "Ropes\n===\n\nOne two. Six ten.\n\nOdd few all six\n\nChains\n===\n\nEnd\n"
    sections = ["Ropes\n===\n\nOne two. Six ten.\n\nOdd few all six", "Chains\n===\n\nEnd"]
    assert chunks(Sections(4), text) == sections
    assert chunks(Sections(4, split_long=True), text) == [
        *("Ropes\n===", "One two. Six ten.", "Odd few all six"),
        "Chains\n===\n\nEnd",
    ]
    assert chunks(Sections(2, split_long=True), text) == [
        *("Ropes\n===", "One two.", "Six ten.", "Odd few", "all six"),
        *("Chains\n===", "End"),
    ]


@pytest.mark.parametrize("split_long", [False, True])
def test_a_document_without_headings_is_divided_at_paragraphs(split_long: bool) -> None:
    document = Document("d", "One two. Three.\n\nfour five\n\nsix seven eight nine\n")
    with collect_notes() as notes:
        spans = list(Sections(4, split_long=split_long).chunk(document))
    assert spans == list(Paragraphs(4).chunk(document))
    assert notes == [NOTE]
