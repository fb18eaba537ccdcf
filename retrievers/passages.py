"""Retrievers that rework the hits of another one: wider, shorter, more diverse, down a tree."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import inf

from leporello.core.calls.derived import spans_hash
from leporello.core.calls.stage_calls import retrieve
from leporello.core.coverage import Span, merge
from leporello.core.passages import Passage, identity
from leporello.core.protocols import Count, Positive, Retriever, Share
from leporello.core.records import Chunk, Example, Hit
from leporello.retrievers.postings import in_order
from leporello.text.sentences import sentence_spans


@dataclass(frozen=True)
class Neighbours:
    """Widens each hit of another retriever by the chunks around it, and joins adjacent hits.

    Hits are adjacent if there is only white space between them. A joined hit has the best score of
    its hits.

    Attributes:
        retriever: Retriever whose hits are widened.
        before: Number of chunks to add before each hit.
        after: Number of chunks to add after each hit.
    """

    retriever: Retriever
    before: Count = 1
    after: Count = 1

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the widened hits of each example, best first."""
        starts = sorted(chunk.start for chunk in chunks)
        ends = sorted(chunk.end for chunk in chunks)
        return [
            in_order(_join(self._widen(hit, starts, ends) for hit in hits))
            for hits in retrieve(self.retriever, examples, chunks)
        ]

    def _widen(self, hit: Hit, starts: Sequence[int], ends: Sequence[int]) -> Hit:
        chunk = hit.chunk
        first = bisect_left(starts, chunk.start)
        last = bisect_right(ends, chunk.end)
        start = min([chunk.start, *starts[max(first - self.before, 0) : first]])
        end = max([chunk.end, *ends[last : last + self.after]])
        return Hit(chunk.document.chunk(start, end), hit.score)


def _join(hits: Iterable[Hit]) -> list[Hit]:
    """Joins hits with at most white space between them; returns them in document order."""
    joined: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.chunk.start, hit.chunk.end)):
        document = hit.chunk.document
        # Chunks begin and end without white space, so only that is between neighbours.
        if joined and not document.text[joined[-1].chunk.end : hit.chunk.start].strip():
            first = joined.pop()
            chunk = document.chunk(first.chunk.start, max(first.chunk.end, hit.chunk.end))
            joined.append(Hit(chunk, max(first.score, hit.score)))
        else:
            joined.append(hit)
    return joined


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
                # The best sentence is kept even if it exceeds the share.
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
    hits = _join(Hit(chunk.document.chunk(span.start, span.end), hit.score) for span in inside)
    parts = [part.chunk for part in hits]
    return [Hit(Passage.of("compressed", parts, [chunk]), hit.score)] if parts else []


@dataclass(frozen=True)
class MMR:
    """Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).

    Selects hits of another retriever one after the other, each time the hit with the highest score
    minus its similarity to the selected hits. Scores are divided by the best score; similarity is
    the cosine of TF-IDF vectors over the hits.

    Attributes:
        retriever: Retriever whose hits are selected; it should return more than k.
        k: Number of hits per question.
        diversity: Weight of the similarity relative to the score, 0 to 1; 0 keeps the order.
    """

    retriever: Retriever
    k: Positive = 10
    diversity: Share = 0.3

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the selected hits of each example; scores are the marginal relevances."""
        return [*map(self._choose, retrieve(self.retriever, examples, chunks))]

    def _choose(self, hits: Sequence[Hit]) -> list[Hit]:
        if not any(hit.score for hit in hits):  # the retriever does not rank
            return [*hits[: self.k]]
        import numpy as np
        from sklearn.feature_extraction.text import TfidfVectorizer

        # Words are separated only by white space, so that chunks of punctuation have words too.
        vectorizer = TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True)  # noqa: S106 -- not a password
        is_blank = not any(hit.chunk.text.strip() for hit in hits)
        vectors = vectorizer.fit_transform(["-" if is_blank else hit.chunk.text for hit in hits])
        similarities = (vectors @ vectors.T).toarray()
        # BM25 scores have no upper limit, but are weighed against cosines, which end at 1.
        top = max((abs(hit.score) for hit in hits), default=0.0) or 1.0
        scores = (1 - self.diversity) * np.array([hit.score / top for hit in hits])
        nearest, chosen = np.zeros(len(hits)), list[Hit]()
        for _ in range(min(self.k, len(hits))):
            marginal = scores - self.diversity * nearest
            best = int(marginal.argmax())
            chosen.append(Hit(hits[best].chunk, round(float(marginal[best]), 6)))
            nearest, scores[best] = np.maximum(nearest, similarities[best]), -np.inf
        return chosen


@dataclass(frozen=True)
class TreeSearch:
    """Searches from the roots of a tree to its chunks, through the best passages of each level.

    RAPTOR's tree traversal (Sarthi et al., ICLR 2024), for trees of `SummaryTree` or `SectionTree`;
    without a tree, it returns the retriever's hits. Hits are chunks, and passages without sources
    among the searched passages. Passages that the retriever does not return are searched last, and
    are no hits.

    Attributes:
        retriever: Retriever that scores passages of all levels; it should return all.
        k: Number of hits per question.
        beam: Number of passages of a level whose sources are searched.
    """

    retriever: Retriever
    k: Positive = 10
    beam: Positive = 5

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the best chunks below the best passages; scores are the retriever's."""
        passages = (chunk for chunk in chunks if isinstance(chunk, Passage))
        below = {id(source) for passage in passages for source in passage.sources}
        searched = {id(chunk) for chunk in chunks}
        roots = [chunk for chunk in chunks if id(chunk) not in below]
        rankings = retrieve(self.retriever, examples, chunks)
        return [self._down(roots, hits, searched) for hits in rankings]

    def _down(
        self, level: Sequence[Chunk], hits: Sequence[Hit], searched: Collection[int]
    ) -> list[Hit]:
        # Of several passages with the same text, the best counts.
        scores = {identity(hit.chunk): hit.score for hit in reversed(hits)}
        leaves: dict[object, Hit] = {}
        while level:
            unique = {id(chunk): chunk for chunk in level}.values()
            # A summary may lack the question's words, although a passage below has them.
            ranked = in_order(Hit(chunk, scores.get(identity(chunk), -inf)) for chunk in unique)
            below = [_below(hit.chunk, searched) for hit in ranked]
            for hit, sources in zip(ranked, below, strict=True):
                if not sources and hit.score > -inf:
                    leaves.setdefault(identity(hit.chunk), hit)
            level = [*chain.from_iterable([*filter(None, below)][: self.beam])]
        return in_order(leaves.values())[: self.k]


def _below(chunk: Chunk, searched: Collection[int]) -> list[Chunk]:
    sources = chunk.sources if isinstance(chunk, Passage) else ()
    return [source for source in sources if id(source) in searched]
