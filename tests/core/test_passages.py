"""Passages: the spans that they represent, for all kinds of sources."""

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
    length = len(document.text)
    nodes: list[Chunk] = [
        document.chunk(*sorted(ends))
        for ends in draw(
            st.lists(st.tuples(st.integers(0, length), st.integers(0, length)), min_size=1)
        )
    ]
    for _ in range(draw(st.integers(0, 6))):
        sources = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3))
        parts = draw(st.lists(st.one_of(st.just("said"), st.sampled_from(sources)), max_size=3))
        nodes.append(
            Passage.of("summary", [*parts, "so"], sources, draw(st.sampled_from(["", "x"])))
        )
    return nodes


@given(passages(), st.data())
def test_coverage_adds_up_for_all_passages(nodes: list[Chunk], data: st.DataObject) -> None:
    hits = data.draw(st.lists(st.sampled_from(nodes)))
    read = Read(tuple(data.draw(st.lists(st.sampled_from(nodes)))))
    cut = data.draw(st.integers(0, 30))
    represented = stood_for(read, cut)
    verbatim = [part.span for part in flat_read(read).passages if isinstance(part, Chunk)]
    selected = [span for hit in hits for span in spans_of(hit)]
    ledger = asdict(
        Coverage.of(len(TEXT), (), selected, verbatim, unchunked=5, stood_for=represented)
    )
    assert min(ledger.values()) >= 0
    assert sum(ledger[part] for part in PARTS) == len(TEXT)
    union = merge((*verbatim, *represented))
    assert ledger["read"] + ledger["stood_for"] == sum(map(len, union))


@given(passages())
def test_passages_are_stored_as_json_without_loss(nodes: list[Chunk]) -> None:
    restored = from_table(DOCUMENT, json.loads(json.dumps(to_table(nodes))))
    assert [*restored] == nodes
    assert [*map(spans_of, restored)] == [*map(spans_of, nodes)]
    assert [[*derivation(node)] for node in restored] == [[*derivation(node)] for node in nodes]


@given(passages())
def test_passages_made_from_a_document_have_no_fault(nodes: list[Chunk]) -> None:
    for node in nodes:
        assert fault_of(node, DOCUMENT) == ""
        assert merge([node.span]) == merge([node.span, *spans_of(node)])


def test_a_passage_represents_its_sources_without_the_gaps_between_them() -> None:
    first, last = DOCUMENT.chunk(0, 21), DOCUMENT.chunk(45, 59)
    both = Passage.of("summary", ["A mule and a laugh."], [last, first])
    above = Passage.of("summary", ["Mules."], [both, DOCUMENT.chunk(10, 30)], "mule")
    assert (both.start, both.end, both.spans) == (0, 59, (Span(0, 21), Span(45, 59)))
    assert above.spans == (Span(0, 30), Span(45, 59))
    assert (above.text, above.reading, both.text) == ("mule", "Mules.", "A mule and a laugh.")
    assert [depth for depth, _ in derivation(above)] == [0, 1, 2, 2, 1]


def test_a_reader_receives_parts_and_only_complete_passages_fit() -> None:
    chunk = DOCUMENT.chunk(0, 21)
    passage = Passage.of("context", ["Of a farm:", chunk], [chunk])
    read = Read(("before", passage, chunk))
    assert flat_read(read).passages == ("before", "Of a farm:", chunk, chunk)
    assert [whole_passages(read, parts) for parts in range(5)] == [0, 1, 1, 2, 3]
    assert reading_text(passage) == "Of a farm:\nOdile feeds the mule."


def test_a_cut_passage_represents_no_spans() -> None:
    """The reader did not see all of the last passage."""
    chunks = [DOCUMENT.chunk(0, 21), DOCUMENT.chunk(22, 44)]
    read = Read(tuple(Passage.of("summary", ["0123456789"], [chunk]) for chunk in chunks))
    assert stood_for(read, 0) == (Span(0, 21), Span(22, 44))
    assert stood_for(read, 1) == (Span(0, 21),)
    assert stood_for(read, 11) == ()


@pytest.mark.parametrize(("parts", "sources"), [([" "], [DOCUMENT.chunk(0, 5)]), (["text"], [])])
def test_a_passage_needs_text_and_sources(parts: list[str], sources: list[Chunk]) -> None:
    with pytest.raises(ValueError, match="needs text and source chunks"):
        Passage.of("summary", parts, sources)


def _circle() -> Chunk:
    passage = Passage.of("summary", ["a"], [DOCUMENT.chunk(0, 5)])
    object.__setattr__(passage, "sources", (passage,))
    return passage


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ("text", "str instead of a chunk"),
        (Chunk(DOCUMENT, 0, 999), "the span (0, 999), which is outside document 'd'"),
        (Document("e", TEXT).chunk(0, 5), "a chunk of document 'e' for document 'd'"),
        (
            Passage.of("summary", ["a"], [Document("e", TEXT).chunk(0, 5)]),
            "a chunk of document 'e' for document 'd'",
        ),
        (Passage(DOCUMENT, 0, 5, "summary", (), ()), "without text or without source chunks"),
        (_circle(), "contains itself"),
    ],
)
def test_faults_of_plug_in_passages_are_reported(chunk: Any, message: str) -> None:
    assert message in fault_of(chunk, DOCUMENT)
