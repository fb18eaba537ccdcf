"""Tests of the retriever Selected, which leaves out front matter and back matter."""

from collections.abc import Sequence

import pytest

from leporello import Document, Example
from leporello.chunkers import FixedTokens, Sections
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.retrievers import Selected

TEXT = "The river rose in the night, and nobody in the town had been told of it in time."
EVERYTHING = "every section would be left out: all are selected"


def thesis(*titles: str) -> str:
    return "\n\n".join(f"{title}\n\n{TEXT}" for title in titles) + "\n"


def selected(text: str) -> list[str]:
    """Returns the headings of the selected sections."""
    document = Document("d", text)
    with collect_notes() as notes:
        chunks = divide(Sections(level=9), document)
        [hits] = retrieve(Selected(), [Example("e", document)], chunks)
    assert EVERYTHING not in notes
    assert [hit.chunk.start for hit in hits] == sorted(hit.chunk.start for hit in hits)
    assert {hit.score for hit in hits} <= {0.0}
    return [hit.chunk.text.splitlines()[0] for hit in hits]


THESIS = (
    ("# On Ferries", "## Abstract", "## Dedication", "## Acknowledgements", "## Contents",
     "## List of Figures"),
    ("## 1 Introduction", "### 1.1 Aims", "## 2 Ropes", "### 2.1 Knots", "## 3 Conclusion"),
    ("## Bibliography", "## Appendix A Proofs", "### A.1 Lengths", "## Curriculum Vitae"),
)  # fmt: skip
HEADINGS = ("General Introduction", "1. INTRODUCTION", "Chapter I: Introduction and Aims",
            "I. INTRODUCTION", "An introduction to ropes", "Einleitung", "**Introduction**",
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "middle", "after"),
    [
        THESIS,
        # The text of a chapter before its introduction is not front matter.
        (("Abstract",), ("Chapter 1: Ropes", "1.1 Introduction", "Chapter 2: Chains"), ()),
        # An introduction of a later chapter is ignored.
        ((), ("Chapter 1: Ropes", "Chapter 2: Chains", "2.1 Introduction"), ()),
        ((), ("1 Ropes", "2 Chains", "2.1 Introduction"), ()),
        ((), ("# Ropes", "## Aims", "# Chains", "## Introduction"), ()),
        ((), ("# Part I", "## Ropes", "# Part II", "## Introduction"), ()),
        *((("# Preface",), (f"# {heading}", "# Ropes"), ()) for heading in HEADINGS),
    ],
)
def test_sections_from_the_introduction_to_the_bibliography_are_selected(
    before: Sequence[str], middle: Sequence[str], after: Sequence[str]
) -> None:
    assert selected(thesis(*before, *middle, *after)) == [*middle]


def test_a_thesis_of_muld_is_selected_from_its_introduction() -> None:
    """The table of contents and each chapter have an introduction too."""
    contents = "##### Contents\n\n-    1 Introduction\n-    2 Ropes\n    -    2.1 Introduction\n\n"
    text = contents + thesis(
        *("###### List of Figures", "## Chapter 1 Introduction", "### 1.1 Aims"),
        *("## Chapter 2 Ropes", "### 2.1 Introduction", "## Appendix A Proofs"),
    )
    assert selected(text) == [
        *("## Chapter 1 Introduction", "### 1.1 Aims", "## Chapter 2 Ropes"),
        "### 2.1 Introduction",
    ]


@pytest.mark.parametrize("entry", ["{} ..... {}", "{}    {}", "{} {}", "{}"])
def test_an_introduction_in_a_table_of_contents_is_ignored(entry: str) -> None:
    titles = ("1 Introduction", "1.1 Aims", "2 Ropes", "References")
    contents = "\n".join(entry.format(title, page) for page, title in enumerate(titles, 5))
    text = f"Contents\n\n{contents}\n\n{TEXT}\n\n" + thesis(*titles)
    assert selected(text) == ["1 Introduction", "1.1 Aims", "2 Ropes"]


def test_without_an_introduction_front_matter_with_text_is_selected() -> None:
    text = thesis("Preface", "Contents", "1 Ropes", "2 Chains", "References")
    assert selected(text) == ["Preface", "1 Ropes", "2 Chains"]


def test_if_all_sections_would_be_left_out_all_are_selected() -> None:
    document = Document("d", thesis("# References", "# Appendix A Foo"))
    chunks = divide(Sections(), document)
    with collect_notes() as notes:
        lists = Selected().retrieve(["", ""], chunks)
    assert notes == [EVERYTHING]
    assert [[hit.chunk for hit in hits] for hits in lists] == [list(chunks)] * 2


def test_a_chunk_belongs_to_the_section_in_which_it_starts() -> None:
    """This matters if chunks cross headings."""
    document = Document("d", "# Introduction\n\na b c d e\n\n# References\n\nf g h i j\n")
    chunks = divide(FixedTokens(4), document)
    [hits] = Selected().retrieve([""], chunks)
    start = document.text.index("# References")
    assert [hit.chunk for hit in hits] == [chunk for chunk in chunks if chunk.start < start]
    assert hits
