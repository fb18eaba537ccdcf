"""Reduces hits to the sentences that are relevant to the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from leporello.core.calls.derived import spans_hash
from leporello.core.calls.stage_calls import retrieve
from leporello.core.coverage import Span, merge
from leporello.core.passages import Passage
from leporello.core.protocols import Retriever, Share
from leporello.core.records import Chunk, Example, Hit
from leporello.text.sentences import sentence_spans


@dataclass(frozen=True)
class Compress:
    """Keeps the sentences of hits that another retriever ranks best, up to a share of their length.

    Sentences are copied unchanged, as in RECOMP's extractive compressor (Xu et al., ICLR 2024), so
    that spans stay exact and no text is invented; LLMLingua and Selective Context remove single
    words. The sentences of a hit represent the complete hit; a hit without selected sentences is
    dropped. Hits stay complete if none of their sentences is ranked. Passages of enrichers are not
    compressed.

    Attributes:
        retriever: Retriever whose hits are compressed.
        sentences: Retriever that ranks the sentences of the document; it should return all.
        share: Share of the characters of a question's hits to keep, 0 to 1.
    """

    retriever: Retriever
    sentences: Retriever
    share: Share = 0.5

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the compressed hits of each example, with their order and scores."""
        if not chunks:
            return [[] for _ in examples]
        hits = retrieve(self.retriever, examples, chunks)
        key = ("sentences", spans_hash(chunks[0].document, chunks))
        units: tuple[Chunk, ...] = chunks[0].document.memo(key, partial(_sentences, chunks))
        ranked = retrieve(self.sentences, examples, units)
        return [*map(self._compressed, hits, ranked)]

    def _compressed(self, hits: Sequence[Hit], ranked: Sequence[Hit]) -> list[Hit]:
        plain = [hit.chunk.span for hit in hits if not isinstance(hit.chunk, Passage)]
        merged = merge(plain)
        budget = self.share * sum(map(len, merged))
        selected: list[Span] = []
        for sentence in (hit.chunk.span for hit in ranked):
            if any(span.start <= sentence.start and sentence.end <= span.end for span in merged):
                # The best sentence is kept even if it exceeds the share, so that a reader has some
                # text.
                if len(sentence) > budget and selected:
                    break
                budget -= len(sentence)
                selected.append(sentence)
        selected.sort()
        if not selected:
            return [*hits]
        return [short for hit in hits for short in _shortened(hit, selected)]


def _sentences(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """Returns the sentences of all chunks, each once, in document order."""
    spans = {
        (chunk.start + start, chunk.start + end)
        for chunk in chunks
        if not isinstance(chunk, Passage)
        for start, end in sentence_spans(chunk.text)
    }
    return tuple(chunks[0].document.chunk(*span) for span in sorted(spans))


def _shortened(hit: Hit, selected: Sequence[Span]) -> list[Hit]:
    """Returns a hit with its selected sentences; empty if it has none."""
    chunk = hit.chunk
    if isinstance(chunk, Passage):
        return [hit]
    inside = [span for span in selected if chunk.start <= span.start and span.end <= chunk.end]
    parts = [chunk.document.chunk(span.start, span.end) for span in _joined(inside, chunk)]
    return [Hit(Passage.of("compressed", parts, [chunk]), hit.score)] if parts else []


def _joined(spans: Sequence[Span], chunk: Chunk) -> list[Span]:
    """Joins spans that have only blanks between them."""
    joined: list[Span] = []
    for span in spans:
        between = chunk.document.text[joined[-1].end : span.start] if joined else "."
        if between.strip():
            joined.append(span)
        else:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
    return joined
