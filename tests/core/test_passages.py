"""Passages: what they stand for, whatever they were made of."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello import Chunk, Document, Read, Span
from leporello.core.coverage import PARTS, Coverage, merge
from leporello.core.passages import (
    Passage,
    derivation,
    fault_of,
    flat_read,
    from_table,
    reading_text,
    spans_of,
    stood_for,
    to_table,
    whole_passages,
)

TEXT = "Odile feeds the mule. The mule bites Grigor. Grigor laughs, and writes it down."
DOCUMENT = Document("d", TEXT)


@st.composite
def passages(draw: st.DrawFn, document: Document = DOCUMENT) -> list[Chunk]:
    """Returns chunks, and passages made of them and of each other."""
    length = len(document.text)
    made: list[Chunk] = [
        document.chunk(*sorted(ends))
        for ends in draw(
            st.lists(st.tuples(st.integers(0, length), st.integers(0, length)), min_size=1)
        )
    ]
    for _ in range(draw(st.integers(0, 6))):
        sources = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
        parts = draw(st.lists(st.one_of(st.just("said"), st.sampled_from(sources)), max_size=3))
        made.append(
            Passage.of("summary", [*parts, "so"], sources, draw(st.sampled_from(["", "x"])))
        )
    return made


@given(passages(), st.data())
def test_the_ledger_adds_up_over_whatever_was_derived(
    made: list[Chunk], data: st.DataObject
) -> None:
    """Each character is in one part, and those stood for lie in what the passages stand for."""
    hits = data.draw(st.lists(st.sampled_from(made)))
    read = Read(tuple(data.draw(st.lists(st.sampled_from(made)))))
    cut = data.draw(st.integers(0, 30))
    stood = stood_for(read, cut)
    seen = [part.span for part in flat_read(read).passages if isinstance(part, Chunk)]
    selected = [span for hit in hits for span in spans_of(hit)]
    ledger = asdict(Coverage.of(len(TEXT), (), selected, seen, unchunked=5, stood_for=stood))
    assert min(ledger.values()) >= 0
    assert sum(ledger[part] for part in PARTS) == len(TEXT)
    assert ledger["read"] + ledger["stood_for"] == sum(map(len, merge((*seen, *stood))))


@given(passages())
def test_passages_are_kept_as_json_and_come_back(made: list[Chunk]) -> None:
    """With their texts, spans and all that they were made of."""
    back = from_table(DOCUMENT, json.loads(json.dumps(to_table(made))))
    assert [*back] == made
    assert [*map(spans_of, back)] == [*map(spans_of, made)]
    assert [[*derivation(one)] for one in back] == [[*derivation(one)] for one in made]


@given(passages())
def test_what_is_made_of_a_document_has_no_fault(made: list[Chunk]) -> None:
    """Spans lie in the document, from the first to the last that is stood for."""
    for one in made:
        assert fault_of(one, DOCUMENT) == ""
        assert merge([one.span]) == merge([one.span, *spans_of(one)])


def test_a_passage_stands_for_what_it_was_made_of_and_for_nothing_between() -> None:
    """Its hull says where it begins and ends, its spans what is in it."""
    first, last = DOCUMENT.chunk(0, 21), DOCUMENT.chunk(45, 59)
    both = Passage.of("summary", ["A mule and a laugh."], [last, first])
    above = Passage.of("summary", ["Mules."], [both, DOCUMENT.chunk(10, 30)], "mule")
    assert (both.start, both.end, both.spans) == (0, 59, (Span(0, 21), Span(45, 59)))
    assert above.spans == (Span(0, 30), Span(45, 59))
    assert (above.text, above.reading, both.text) == ("mule", "Mules.", "A mule and a laugh.")
    assert [depth for depth, _ in derivation(above)] == [0, 1, 2, 2, 1]


def test_a_reader_is_given_parts_and_fits_whole_passages() -> None:
    """A window that ends within a passage leaves it out."""
    chunk = DOCUMENT.chunk(0, 21)
    told = Passage.of("context", ["Of a farm:", chunk], [chunk])
    read = Read(("before", told, chunk))
    assert flat_read(read).passages == ("before", "Of a farm:", chunk, chunk)
    assert [whole_passages(read, parts) for parts in range(5)] == [0, 1, 1, 2, 3]
    assert reading_text(told) == "Of a farm:\nOdile feeds the mule."


def test_what_the_reader_cut_off_stands_for_nothing() -> None:
    """The last passage, of which it did not see all."""
    chunks = [DOCUMENT.chunk(0, 21), DOCUMENT.chunk(22, 44)]
    read = Read(tuple(Passage.of("summary", ["0123456789"], [chunk]) for chunk in chunks))
    assert stood_for(read, 0) == (Span(0, 21), Span(22, 44))
    assert stood_for(read, 1) == (Span(0, 21),)
    assert stood_for(read, 11) == ()


@pytest.mark.parametrize(("parts", "sources"), [([" "], [DOCUMENT.chunk(0, 5)]), (["text"], [])])
def test_a_passage_needs_text_and_something_that_it_stands_for(
    parts: list[str], sources: list[Chunk]
) -> None:
    """Else it is refused when it is made."""
    with pytest.raises(ValueError, match="needs text and source chunks"):
        Passage.of("summary", parts, sources)


def _circle() -> Chunk:
    one = Passage.of("summary", ["a"], [DOCUMENT.chunk(0, 5)])
    object.__setattr__(one, "sources", (one,))
    return one


@pytest.mark.parametrize(
    ("chunk", "told"),
    [
        ("text", "str instead of a chunk"),
        (Chunk(DOCUMENT, 0, 999), r"the span \(0, 999\), which is outside document 'd'"),
        (Document("e", TEXT).chunk(0, 5), "a chunk of document 'e' for document 'd'"),
        (
            Passage.of("summary", ["a"], [Document("e", TEXT).chunk(0, 5)]),
            "a chunk of document 'e' for document 'd'",
        ),
        (Passage(DOCUMENT, 0, 5, "summary", (), ()), "without text or without source chunks"),
        (_circle(), "contains itself"),
    ],
)
def test_what_a_plug_in_made_wrongly_is_told(chunk: Any, told: str) -> None:
    """Spans of another document or outside, nothing to read, a circle."""
    import re

    assert re.search(told, fault_of(chunk, DOCUMENT))
