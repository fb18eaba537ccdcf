"""Retrievers that look at what is asked, or at places alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval import chunked, examples_of

from leporello.core.calls.stage_calls import retrieve
from leporello.retrievers import BM25, ByQuestion, Ends, Evenly, First

TEXT = "".join(f"Fact {n} is about number {n}. " for n in range(20))
CHUNKS = chunked(TEXT)


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("Which fact is about number 7?", 3),
        ("", 20),
        ("Summarise this", 20),
        ("Fact 3 is about number 3.", 20),
        ("Summarize what is said about number 3", 3),
    ],
)
def test_all_is_given_where_all_must_be_read(question: str, count: int) -> None:
    """A question gets what the other retriever finds for it."""
    [hits] = retrieve(ByQuestion(BM25(3)), examples_of([question], CHUNKS), CHUNKS)
    assert len(hits) == count


@given(st.integers(1, 30), st.integers(0, 25))
def test_places_alone_decide(k: int, count: int) -> None:
    """As many chunks as asked for, each once, in their order; the ends take from both sides."""
    chunks = CHUNKS[:count]
    for retriever in (First(k), Ends(k), Evenly(k)):
        [hits] = retriever.retrieve(["?"], chunks)
        found = [chunks.index(hit.chunk) for hit in hits]
        assert len(found) == min(k, len(chunks))
        assert found == sorted(set(found))
    if 1 < k < len(chunks):
        [hits] = Ends(k).retrieve(["?"], chunks)
        assert (hits[0].chunk, hits[-1].chunk) == (chunks[0], chunks[-1])
