"""Tests of retrievers that change the hits of another retriever, or that return chunks by place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval import chunked, examples_of

from leporello import Document, Example
from leporello.chunkers import Paragraphs
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.core.passages import Passage
from leporello.retrievers import (
    BM25,
    MMR,
    All,
    ByQuestion,
    Compress,
    Ends,
    EntityGraph,
    Evenly,
    First,
    Fusion,
    Neighbours,
    TfIdf,
    TreeSearch,
    TwoSteps,
)

FARM = (
    "Odile Marsh feeds the mule of the ferry every morning.\n\n"
    "Odile Marsh feeds the mule of the ferry every evening.\n\n"
    "The town lies by the water, and it rains there.\n\n"
    "Grigor Sande was born in Vell, a town in the north.\n\n"
    "The mule belongs to Grigor Sande, who keeps the ledger."
)


def _texts(retriever: Any, question: str) -> list[str]:
    document = Document("farm", FARM)
    chunks = divide(Paragraphs(size=12), document)
    [hits] = retrieve(retriever, [Example("q", document, question=question)], chunks)
    return [hit.chunk.text for hit in hits]


def test_mmr_ranks_similar_passages_lower() -> None:
    plain = _texts(MMR(BM25(k=5), k=3, diversity=0.0), "Who feeds the mule?")
    diverse = _texts(MMR(BM25(k=5), k=3, diversity=0.6), "Who feeds the mule?")
    assert sum("Odile" in text for text in plain) == 2
    assert sum("Odile" in text for text in diverse) == 1


def test_a_walk_over_names_finds_passages_without_words_of_the_question() -> None:
    """It leads from the mule to its owner, and from the owner to his place of birth."""
    question = "Where does the owner of the mule come from?"
    before = _texts(EntityGraph(BM25(k=5), k=5, damping=0.0), question)
    after = _texts(EntityGraph(BM25(k=5), k=5, damping=0.8), question)
    born = next(text for text in after if "born in Vell" in text)
    assert after.index(born) < before.index(born)


@pytest.mark.parametrize(
    "retriever",
    [
        BM25(),
        TfIdf(),
        Compress(BM25(), BM25(k=99)),
        EntityGraph(BM25()),
        Fusion((BM25(), TfIdf())),
        MMR(BM25()),
        Neighbours(BM25()),
        TreeSearch(BM25(k=99)),
        TwoSteps(BM25(), TfIdf()),
    ],
)
def test_a_word_that_no_passage_has_finds_nothing(retriever: Any) -> None:
    """Retrievers that use the hits of another one do not fill up an empty list."""
    with collect_notes() as notes:
        assert _texts(retriever, "submarine") == []
    assert " found no passage with a word of a question on this document" in notes[0]
    assert _texts(retriever, "mule") != []


def test_hits_stay_complete_if_no_sentence_has_a_word_of_the_question() -> None:
    """The retriever found them by other means."""
    assert _texts(Compress(All(), BM25(k=99)), "submarine") == FARM.split("\n\n")


def test_a_tree_is_searched_below_a_summary_without_the_words_of_the_question() -> None:
    document = Document("farm", FARM)
    chunks = divide(Paragraphs(size=12), document)
    roots = [
        Passage.of("summary", ["People feed animals."], chunks[:3]),
        Passage.of("summary", ["Somebody keeps books."], chunks[3:]),
    ]
    example = Example("q", document, question="ledger")
    [hits] = retrieve(TreeSearch(BM25(k=99)), [example], [*chunks, *roots])
    assert [hit.chunk for hit in hits] == [chunks[4]]


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
