"""Tests of retrievers that depend on the kind of question, or only on places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval import chunked, examples_of

from leporello.core.calls.stage_calls import retrieve
from leporello.core.notes import collect_notes
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
    [hits] = retrieve(ByQuestion(BM25(3)), examples_of([question], CHUNKS), CHUNKS)
    assert len(hits) == count


@pytest.mark.parametrize(("complete", "count"), [(20, 20), (19, 3)])
def test_short_documents_are_returned_completely(complete: int, count: int) -> None:
    examples = examples_of(["Which fact is about number 7?"], CHUNKS)
    [hits] = retrieve(ByQuestion(BM25(3), complete=complete), examples, CHUNKS)
    [expected] = retrieve(BM25(3), examples, CHUNKS)
    assert hits[:3] == expected
    assert len({hit.chunk.start for hit in hits}) == count
    others = [hit.chunk.start for hit in hits[3:]]
    assert others == sorted(others)


def test_a_question_in_other_words_reads_a_short_document_with_a_note() -> None:
    examples = examples_of(["Wherefore?"], CHUNKS)
    with collect_notes() as notes:
        [hits] = retrieve(ByQuestion(BM25(3), complete=20), examples, CHUNKS)
    assert [hit.chunk for hit in hits] == [*CHUNKS]
    assert "a document is short, so all its passages are read" in notes


@given(st.integers(1, 30), st.integers(0, 25))
def test_retrievers_by_place_return_k_chunks_in_document_order(k: int, count: int) -> None:
    chunks = CHUNKS[:count]
    for retriever in (First(k), Ends(k), Evenly(k)):
        [hits] = retriever.retrieve(["?"], chunks)
        numbers = [chunks.index(hit.chunk) for hit in hits]
        assert len(numbers) == min(k, len(chunks))
        assert numbers == sorted(set(numbers))
    if 1 < k < len(chunks):
        [hits] = Ends(k).retrieve(["?"], chunks)
        assert (hits[0].chunk, hits[-1].chunk) == (chunks[0], chunks[-1])
