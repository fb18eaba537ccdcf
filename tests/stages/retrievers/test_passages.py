"""Tests of retrievers that change the hits of another retriever."""

from __future__ import annotations

from leporello import Document, Example
from leporello.chunkers import Paragraphs
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.retrievers import BM25, MMR, EntityGraph

FARM = "\n\n".join(
    (
        "Odile Marsh feeds the mule of the ferry every morning.",
        "Odile Marsh feeds the mule of the ferry every evening.",
        "The town lies by the water, and it rains there.",
        "Grigor Sande was born in Vell, a town in the north.",
        "The mule belongs to Grigor Sande, who keeps the ledger.",
    )
)


def _texts(retriever: MMR | EntityGraph, question: str) -> list[str]:
    document = Document("farm", FARM)
    chunks = divide(Paragraphs(size=12), document)
    [hits] = retrieve(retriever, [Example("q", document, question=question)], chunks)
    return [hit.chunk.text for hit in hits]


def test_mmr_ranks_similar_passages_lower() -> None:
    """Without diversity it does not."""
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
