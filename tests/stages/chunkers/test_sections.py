"""The chunker Sections: what holds for every document, and what it does with one by hand."""

from __future__ import annotations

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
    """Returns the chunks' texts; no note is told."""
    document = Document("d", text)
    with collect_notes() as notes:
        spans = list(chunker.chunk(document))
    assert notes == []
    return [document.chunk(span.start, span.end).text for span in spans]


def test_a_section_is_a_chunk_with_its_heading() -> None:
    """What stands before the first is one too; deeper sections stay with what is around them."""
    assert chunks(Sections(), THESIS) == [
        "A thesis",
        "# Ropes\n\nOn ropes.",
        "## Knots\n\nOne knot.\n\nAnother knot.\n\n### Bends\n\nA bend is a knot.",
        "# Chains\n\n## Links\n\nA link.",
    ]


def test_the_level_says_how_deep_sections_are_divided() -> None:
    """1 leaves the outermost sections whole; a large one divides at every heading."""
    assert [text.splitlines()[0] for text in chunks(Sections(level=1), THESIS)] == [
        "A thesis",
        "# Ropes",
        "# Chains",
    ]
    assert [text.splitlines()[0] for text in chunks(Sections(level=9), THESIS)] == [
        "A thesis",
        "# Ropes",
        "## Knots",
        "### Bends",
        "# Chains",
    ]


def test_a_heading_without_text_goes_with_its_first_subsection() -> None:
    """Nobody summarises a heading alone; where the level leaves subsections in, nothing changes."""
    assert chunks(Sections(level=2), THESIS)[-1] == "# Chains\n\n## Links\n\nA link."
    text = "# Ropes\n\n## Knots\n\n### Bends\n\nA bend.\n\n## Ends\n\nAn end.\n"
    assert chunks(Sections(level=3), text) == [
        "# Ropes\n\n## Knots\n\n### Bends\n\nA bend.",
        "## Ends\n\nAn end.",
    ]


def test_long_sections_stay_whole_unless_asked() -> None:
    """Then they are divided at paragraphs, sentences, tokens, and never across a heading."""
    text = "Ropes\n===\n\nOne two. Six ten.\n\nOdd few all six\n\nChains\n===\n\nEnd\n"
    whole = ["Ropes\n===\n\nOne two. Six ten.\n\nOdd few all six", "Chains\n===\n\nEnd"]
    assert chunks(Sections(4), text) == whole
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
    """Packed to the size; a note says so."""
    document = Document("d", "One two. Three.\n\nfour five\n\nsix seven eight nine\n")
    with collect_notes() as notes:
        found = list(Sections(4, split_long=split_long).chunk(document))
    assert found == list(Paragraphs(4).chunk(document))
    assert notes == [NOTE]
