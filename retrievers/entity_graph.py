"""Finds passages by a random walk on a graph of names and passages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import regex

from leporello.core.calls.derived import spans_hash
from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import Positive, Retriever, Share
from leporello.core.records import Chunk, Example, Hit
from leporello.retrievers.postings import best_chunks
from leporello.text.folding import composed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Successive words with capitals, with at most one small word between them: `Duke of York`.
_NAME = regex.compile(r"\p{Lu}[\w'’-]+(?:\s(?:(?:of|the|de|von|van)\s)?\p{Lu}[\w'’-]+){0,4}")
_AT_NAMES = 0.3  # share of the starts at names of the question
_STEPS = 30  # of the walk, after which changes are below the sixth digit


@dataclass(frozen=True)
class EntityGraph:
    """Personalised PageRank over names and passages (HippoRAG: Gutiérrez et al., NeurIPS 2024).

    The nodes are passages, and names that at least two passages contain; edges connect names with
    their passages. The walk starts at the names of the question and at the hits of another
    retriever, and restarts again and again. So it finds a passage without words of the question, if
    it shares a name with a passage that has them. Names are recognised by capitals, so scripts
    without capitals have no names.

    Attributes:
        retriever: Retriever whose hits, weighted by scores, start the walk; it should return many.
        k: Number of hits per question.
        damping: Probability that the walk continues instead of restarting, 0 to 1.
    """

    retriever: Retriever
    k: Positive = 10
    # 0.5 stays: 0.3 finds all evidence for 76.7 and 73.3 % (MuSiQue, HotpotQA), 0.7 for 83.3 and
    # 63.3 % (decision 24).
    damping: Share = 0.5

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k most visited passages of each example, or the other retriever's hits."""
        document = chunks[0].document
        key = ("entity graph", spans_hash(document, chunks))
        graph: _Graph = document.memo(key, partial(_Graph, chunks))
        rankings = retrieve(self.retriever, examples, chunks)
        walks = (
            graph.walk(example.question, hits, self.damping)
            for example, hits in zip(examples, rankings, strict=True)
        )
        visited = best_chunks(walks, chunks, self.k)
        return [
            [hit for hit in best if hit.score] or hits[: self.k]
            for best, hits in zip(visited, rankings, strict=True)
        ]


class _Graph:
    """Graph of passages and names, as a matrix of transition probabilities, passages first."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        from scipy import sparse

        self.number = {chunk: n for n, chunk in enumerate(chunks)}
        mentions: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for number, chunk in enumerate(chunks):
            for name in names_in(chunk.text):
                mentions[name][number] += 1
        # A name in one passage leads nowhere.
        shared = {name: counts for name, counts in mentions.items() if len(counts) > 1}
        self.names = {name: len(chunks) + n for n, name in enumerate(sorted(shared))}
        self.size = len(chunks) + len(self.names)
        edges = [
            (self.names[name], number, count / len(counts))  # frequent names have less weight
            for name, counts in shared.items()
            for number, count in counts.items()
        ]
        rows, columns, weights = zip(*edges, strict=True) if edges else ((), (), ())
        shape = (self.size, self.size)
        half: Any = sparse.csr_matrix((weights, (rows, columns)), shape)
        both = half + half.T
        sums = both.sum(axis=0).A1
        # Passages without shared names have no edges, and would divide by zero.
        sums[sums == 0] = 1.0
        self.steps = both @ sparse.diags(1 / sums)

    def walk(self, question: str, hits: Sequence[Hit], damping: float) -> NDArray[np.float64]:
        """Returns the rounded share of visits to each passage, shape (passages,)."""
        import numpy as np

        at_hits, at_names = np.zeros(self.size), np.zeros(self.size)
        lowest = min((hit.score for hit in hits), default=0.0)
        for hit in hits:
            if hit.chunk in self.number:  # widened or joined hits are not in the graph
                # Cross-encoders give negative scores, but a walk needs weights from 0.
                at_hits[self.number[hit.chunk]] += hit.score - min(lowest, 0.0)
        for name in names_in(question):
            if name in self.names:
                at_names[self.names[name]] += 1
        parts = [(1 - _AT_NAMES, at_hits), (_AT_NAMES, at_names)]
        starts = [(weight, part / part.sum()) for weight, part in parts if part.sum()]
        # Neither names nor hits: any ranking would be a guess.
        if not starts:
            return np.zeros(len(self.number))
        start = sum(weight * part for weight, part in starts) / sum(weight for weight, _ in starts)
        distribution = start
        for _ in range(_STEPS):
            distribution = (1 - damping) * start + damping * (self.steps @ distribution)
        # Rounded, since the last digits differ between machines and would reorder ties.
        visits: NDArray[np.float64] = distribution[: len(self.number)].round(9)
        return visits


def names_in(text: str) -> list[str]:
    """Returns the names of a text in lower case, complete and word by word."""
    text = composed(text)
    small = {word for word in re.findall(r"[\w'’-]+", text) if word[:1].islower()}
    names = []
    for match in _NAME.finditer(text):
        words = [word.lower() for word in re.findall(r"[\w'’-]+", match.group())]
        if len(words) > 1:
            names.append(" ".join(words))
        # A word that the text also has in lower case is not a name, but began a sentence.
        names += [word for word in words if word not in small and len(word) > 1]
    return names
