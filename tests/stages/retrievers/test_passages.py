"""Tests of retrievers that change the hits of another retriever."""

from typing import Any

import pytest

from leporello import Document, Example
from leporello.chunkers import Paragraphs
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.core.notes import collect_notes
from leporello.core.passages import Passage
from leporello.retrievers import (
    BM25,
    MMR,
    All,
    Compress,
    EntityGraph,
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
