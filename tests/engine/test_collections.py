"""A collection is divided and indexed a file at a time, and answers as one document would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello import Document, Example, Span
from leporello.cache.store import Cache
from leporello.chunkers import FixedTokens
from leporello.config import Pipeline
from leporello.core.calls.segments import cached_chunks
from leporello.core.members import join
from leporello.core.records import Chunk, Index
from leporello.engine.selection import divided, select
from leporello.retrievers import BM25, TfIdf
from leporello.text.outline import cited

WORDS = st.sampled_from(["fish", "Fish", "bird", "boat", "boats", "und", "ähm", "的", "x" * 99])
TEXTS = st.lists(st.lists(WORDS, min_size=1).map(" ".join), min_size=1, max_size=6)


def collection(*texts: str) -> Document:
    """Returns a collection of these texts."""
    return join([Document(f"{n}.txt", text) for n, text in enumerate(texts)], "all")


@given(TEXTS, st.lists(WORDS, max_size=5).map(" ".join), st.integers(1, 9))
def test_scores_are_those_of_all_chunks_together(texts: list[str], asked: str, size: int) -> None:
    """BM25 put together of files' segments has the scores of BM25 over all chunks."""
    document = collection(*texts)
    bm25, example = BM25(k=5, k1=1.2, b=0.5), Example("q", document, asked)
    chunks = divided(FixedTokens(size=size), example)
    [selected] = select(Pipeline(FixedTokens(size=size), bm25, None, None), [example])
    [wanted] = replace(bm25, k=len(chunks)).retrieve([asked], chunks)
    scores = {hit.chunk: hit.score for hit in wanted}
    found = [hit.score for hit in selected.hits]
    assert found == pytest.approx([hit.score for hit in wanted[:5]])
    assert found == pytest.approx([scores[hit.chunk] for hit in selected.hits])


def test_of_one_changed_file_only_that_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks and postings are kept by a file's content, wherever it stands in the collection."""
    done: list[str] = []
    segment, chunk = BM25.segment, FixedTokens.chunk

    def noted(self: BM25, chunks: Sequence[Chunk]) -> Index:
        done.append(f"index {chunks[0].document.id}")
        return segment(self, chunks)

    def divided_(self: FixedTokens, document: Document) -> Iterator[Span]:
        done.append(f"divide {document.id}")
        return chunk(self, document)

    monkeypatch.setattr(BM25, "segment", noted)
    monkeypatch.setattr(FixedTokens, "chunk", divided_)
    stages, cache = Pipeline(FixedTokens(size=2), BM25(k=1), None, None), Cache(tmp_path)

    def found(document: Document) -> str:
        document.use_cache(cache)
        [selection] = select(stages, [Example("q", document, "boat")])
        assert cached_chunks(document, stages.chunker, None) is not None
        return cited(document, selection.hits[0].chunk.span)

    assert found(collection("a fish", "the bird", "one boat")) == "2.txt characters 0–8"
    assert done == [f"{what} {n}.txt" for what in ("divide", "index") for n in range(3)]
    done.clear()
    assert found(collection("a fish", "two birds, a boat", "one")) == "1.txt characters 11–17"
    assert done == ["divide 1.txt", "divide 2.txt", "index 1.txt", "index 2.txt"]
    done.clear()
    other = replace(stages, retriever=BM25(k=3, b=0.5))
    select(other, [Example("q", collection("a fish", "one"), "fish")])
    document = collection("a fish", "two birds, a boat", "one")
    document.use_cache(cache)
    assert len(select(other, [Example("q", document, "fish")])[0].hits) == 3
    assert "index 1.txt" not in done[4:]


def test_other_retrievers_get_all_chunks() -> None:
    """A retriever that knows nothing of segments searches the chunks of all files."""
    document = collection("a fish", "the bird", "one boat")
    stages = Pipeline(FixedTokens(size=9), TfIdf(k=1), None, None)
    [selection] = select(stages, [Example("q", document, "boat")])
    assert cited(document, selection.hits[0].chunk.span) == "2.txt characters 0–8"
