"""Retrievers of LangChain and Haystack as ours: a class of one's own, whose `make` returns one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.environment.extras import require
from leporello.core.records import Chunk, Hit

if TYPE_CHECKING:
    from haystack import Document as HaystackDocument
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

_NUMBER = "chunk"  # of the metadata, by which a document that is found is known


@dataclass(frozen=True)
class LangChainRetriever:
    """Selects with a retriever of LangChain, which a class that extends this one makes.

    A score is one over the rank: its retrievers tell none.
    """

    def make(self, documents: list[Document]) -> BaseRetriever:
        """Returns a retriever over the chunks of one document; their metadata must be kept."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `make`")

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each question, best first."""
        require(type(self).__name__, "langchain_core")
        from langchain_core.documents import Document

        texts = [Document(c.text, metadata={_NUMBER: n}) for n, c in enumerate(chunks)]
        made = _kept(self, chunks, lambda: self.make(texts))
        return [
            _hits([(d.metadata, None) for d in found], chunks) for found in made.batch([*questions])
        ]


@dataclass(frozen=True)
class HaystackRetriever:
    """Selects with a component of Haystack, which a class that extends this one makes.

    A score is one over the rank where the component tells none.
    """

    def make(self, documents: list[HaystackDocument]) -> Any:  # noqa: ANN401 -- a component
        """Returns what takes a `query` and gives some of these chunks; their meta must be kept."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `make`")

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each question, best first."""
        require(type(self).__name__, "haystack")
        from haystack import Document

        texts = [Document(content=c.text, meta={_NUMBER: n}) for n, c in enumerate(chunks)]
        made = _kept(self, chunks, lambda: self.make(texts))
        found = (made.run(query=question)["documents"] for question in questions)
        return [_hits([(d.meta, d.score) for d in one], chunks) for one in found]


def _kept(stage: object, chunks: Sequence[Chunk], make: Callable[[], Any]) -> Any:  # noqa: ANN401 -- what `make` returns
    """Returns what is made over a document's chunks, which lives as long as the document."""
    key = (type(stage), repr(stage), *(chunk.span for chunk in chunks))
    return chunks[0].document.memo(key, make) if chunks else make()


def _hits(
    found: Sequence[tuple[dict[str, Any], float | None]], chunks: Sequence[Chunk]
) -> list[Hit]:
    hits: dict[int, Hit] = {}
    for rank, (metadata, score) in enumerate(found, 1):
        number = metadata.get(_NUMBER)
        if number is None:
            raise ValueError(
                f"what it found has no {_NUMBER!r} in its metadata: give the documents that `make`"
                " gets to the retriever as they are"
            )
        hits.setdefault(number, Hit(chunks[number], 1 / rank if score is None else float(score)))
    return [*hits.values()]
