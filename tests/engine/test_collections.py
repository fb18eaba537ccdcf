"""Collections: chunked and indexed file by file, searched like one document."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leporello import Document, Example, Span
from leporello.cache.store import Cache
from leporello.chunkers import FixedTokens
from leporello.config import Pipeline
from leporello.core.members import join
from leporello.core.records import Chunk, Index
from leporello.engine.selection import document_chunks, select
from leporello.retrievers import BM25
from leporello.text.outline import cited

WORDS = st.sampled_from(["fish", "Fish", "bird", "boat", "boats", "und", "ähm", "的", "x" * 99])
TEXTS = st.lists(st.lists(WORDS, min_size=1).map(" ".join), min_size=1, max_size=6)


def collection(*texts: str) -> Document:
    return join([Document(f"{n}.txt", text) for n, text in enumerate(texts)], "all")


@given(TEXTS, st.lists(WORDS, max_size=5).map(" ".join), st.integers(1, 9))
@example(["fish " * 300, "fish bird"], "bird", 1)  # more chunks than an 8-bit number counts
def test_scores_equal_those_of_all_chunks(texts: list[str], question: str, size: int) -> None:
    document = collection(*texts)
    bm25, row = BM25(k=5, k1=1.2, b=0.5), Example("q", document, question)
    chunks = document_chunks(FixedTokens(size=size), row)
    [selected] = select(Pipeline(FixedTokens(size=size), bm25, None, None), [row])
    [expected] = replace(bm25, k=len(chunks)).retrieve([question], chunks)
    by_chunk = {hit.chunk: hit.score for hit in expected}
    scores = [hit.score for hit in selected.hits]
    assert scores == pytest.approx([hit.score for hit in expected[:5]])
    assert scores == pytest.approx([by_chunk[hit.chunk] for hit in selected.hits])


def test_only_changed_files_are_chunked_and_indexed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks and postings are cached by the content of a file, at any place in the collection."""
    log: list[str] = []
    segment, chunk = BM25.segment, FixedTokens.chunk

    def logged_segment(self: BM25, chunks: Sequence[Chunk]) -> Index:
        log.append(f"index {chunks[0].document.id}")
        return segment(self, chunks)

    def logged_chunk(self: FixedTokens, document: Document) -> Iterator[Span]:
        log.append(f"chunk {document.id}")
        return chunk(self, document)

    monkeypatch.setattr(BM25, "segment", logged_segment)
    monkeypatch.setattr(FixedTokens, "chunk", logged_chunk)
    stages, cache = Pipeline(FixedTokens(size=2), BM25(k=1), None, None), Cache(tmp_path)

    def citation(document: Document) -> str:
        document.use_cache(cache)
        [selection] = select(stages, [Example("q", document, "boat")])
        return cited(document, selection.hits[0].chunk.span)

    assert citation(collection("a fish", "the bird", "one boat")) == "2.txt characters 0–8"
    assert log == [f"{step} {n}.txt" for step in ("chunk", "index") for n in range(3)]
    log.clear()
    assert citation(collection("a fish", "two birds, a boat", "one")) == "1.txt characters 11–17"
    assert log == ["chunk 1.txt", "chunk 2.txt", "index 1.txt", "index 2.txt"]
    log.clear()
    changed = replace(stages, retriever=BM25(k=3, b=0.5))
    select(changed, [Example("q", collection("a fish", "one"), "fish")])
    document = collection("a fish", "two birds, a boat", "one")
    document.use_cache(cache)
    assert len(select(changed, [Example("q", document, "a one")])[0].hits) == 3
    assert "index 1.txt" not in log[4:]
