"""Hits with the sentences alone that have to do with the question."""

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

    Sentences are taken out as they stand, as RECOMP's extractive compressor does (Xu et al., ICLR
    2024), so that spans stay exact and nothing is made up; LLMLingua and Selective Context leave
    out single words. What is left of a hit stands for all of it; a hit without such a sentence
    falls away. Passages of enrichers are not cut.

    Attributes:
        retriever: Retriever whose hits are compressed.
        sentences: Retriever that ranks the sentences of the document; let it return all.
        share: Share of the characters of a question's hits that is kept, 0 to 1.
    """

    retriever: Retriever
    sentences: Retriever
    share: Share = 0.5

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each example in their order, with their scores, shorter."""
        if not chunks:
            return [[] for _ in examples]
        found = retrieve(self.retriever, examples, chunks)
        key = ("sentences", spans_hash(chunks[0].document, chunks))
        units: tuple[Chunk, ...] = chunks[0].document.memo(key, partial(_sentences, chunks))
        ranked = retrieve(self.sentences, examples, units)
        return [*map(self._compressed, found, ranked)]

    def _compressed(self, hits: Sequence[Hit], ranked: Sequence[Hit]) -> list[Hit]:
        plain = [hit.chunk.span for hit in hits if not isinstance(hit.chunk, Passage)]
        inside, left = merge(plain), self.share * sum(map(len, merge(plain)))
        kept: list[Span] = []
        for sentence in (hit.chunk.span for hit in ranked):
            if any(span.start <= sentence.start and sentence.end <= span.end for span in inside):
                if len(sentence) > left and kept:
                    break
                left -= len(sentence)
                kept.append(sentence)
        kept.sort()
        return [short for hit in hits for short in _short(hit, kept)]


def _sentences(chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """Returns the sentences of all chunks, each once, in document order."""
    spans = {
        (chunk.start + start, chunk.start + end)
        for chunk in chunks
        if not isinstance(chunk, Passage)
        for start, end in sentence_spans(chunk.text)
    }
    return tuple(chunks[0].document.chunk(*span) for span in sorted(spans))


def _short(hit: Hit, kept: Sequence[Span]) -> list[Hit]:
    """Returns a hit with the sentences that were kept, none if there are none."""
    chunk = hit.chunk
    if isinstance(chunk, Passage):
        return [hit]
    own = [span for span in kept if chunk.start <= span.start and span.end <= chunk.end]
    parts = [chunk.document.chunk(span.start, span.end) for span in _joined(own, chunk)]
    return [Hit(Passage.of("compressed", parts, [chunk]), hit.score)] if parts else []


def _joined(spans: Sequence[Span], chunk: Chunk) -> list[Span]:
    """Returns spans, those with nothing but blanks between them made one."""
    joined: list[Span] = []
    for span in spans:
        between = chunk.document.text[joined[-1].end : span.start] if joined else "."
        if between.strip():
            joined.append(span)
        else:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
    return joined
