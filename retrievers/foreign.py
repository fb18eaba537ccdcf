"""Base classes for plug-ins that use a retriever of LangChain or Haystack."""

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

_NUMBER = "chunk"  # key of the chunk's number in the metadata


@dataclass(frozen=True)
class LangChainRetriever:
    """Base class for a retriever of LangChain, which `make` of the subclass returns.

    Scores are 1 / rank, since LangChain's retrievers return no scores.
    """

    # A method, not a parameter, so that its source is part of caches and signatures.
    def make(self, documents: list[Document]) -> BaseRetriever:
        """Returns a retriever of the documents, which must return their metadata unchanged."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `make`")

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each question, best first."""
        require(type(self).__name__, "langchain_core")
        from langchain_core.documents import Document

        texts = [Document(c.text, metadata={_NUMBER: n}) for n, c in enumerate(chunks)]
        retriever = _memoised(self, chunks, lambda: self.make(texts))
        rankings = retriever.batch([*questions])
        return [_hits([(d.metadata, None) for d in ranking], chunks) for ranking in rankings]


@dataclass(frozen=True)
class HaystackRetriever:
    """Base class for a component of Haystack, which `make` of the subclass returns.

    Scores are 1 / rank if the component returns no scores.
    """

    def make(self, documents: list[HaystackDocument]) -> Any:  # noqa: ANN401 -- a component
        """Returns a component that takes a `query`, and returns documents with unchanged `meta`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `make`")

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each question, best first."""
        require(type(self).__name__, "haystack")
        from haystack import Document

        texts = [Document(content=c.text, meta={_NUMBER: n}) for n, c in enumerate(chunks)]
        retriever = _memoised(self, chunks, lambda: self.make(texts))
        rankings = (retriever.run(query=question)["documents"] for question in questions)
        return [_hits([(d.meta, d.score) for d in ranking], chunks) for ranking in rankings]


def _memoised(stage: object, chunks: Sequence[Chunk], make: Callable[[], Any]) -> Any:  # noqa: ANN401 -- the result of `make`
    """Returns the retriever of a document's chunks, which lives as long as the document."""
    key = (type(stage), repr(stage), *(chunk.span for chunk in chunks))
    return chunks[0].document.memo(key, make)


def _hits(
    ranking: Sequence[tuple[dict[str, Any], float | None]], chunks: Sequence[Chunk]
) -> list[Hit]:
    hits: dict[int, Hit] = {}
    for rank, (metadata, score) in enumerate(ranking, 1):
        number = metadata.get(_NUMBER)
        if number is None:
            raise ValueError(
                f"a returned document has no {_NUMBER!r} in its metadata: pass the documents from"
                " `make` to the retriever unchanged"
            )
        # A chunk may be returned twice; the first place is the better one.
        hits.setdefault(number, Hit(chunks[number], 1 / rank if score is None else float(score)))
    return [*hits.values()]
