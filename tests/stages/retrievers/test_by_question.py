"""Tests of retrievers that depend on the kind of question, or only on places."""

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
def test_tasks_about_the_complete_document_return_all_chunks(question: str, count: int) -> None:
    """Questions return the hits of the inner retriever."""
    [hits] = retrieve(ByQuestion(BM25(3)), examples_of([question], CHUNKS), CHUNKS)
    assert len(hits) == count


@given(st.integers(1, 30), st.integers(0, 25))
def test_retrievers_by_place_return_k_chunks_in_document_order(k: int, count: int) -> None:
    """`Ends` returns the first and last chunks."""
    chunks = CHUNKS[:count]
    for retriever in (First(k), Ends(k), Evenly(k)):
        [hits] = retriever.retrieve(["?"], chunks)
        numbers = [chunks.index(hit.chunk) for hit in hits]
        assert len(numbers) == min(k, len(chunks))
        assert numbers == sorted(set(numbers))
    if 1 < k < len(chunks):
        [hits] = Ends(k).retrieve(["?"], chunks)
        assert (hits[0].chunk, hits[-1].chunk) == (chunks[0], chunks[-1])
