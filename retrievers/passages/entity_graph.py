"""Passages that names lead to, by a walk over who stands with whom."""

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
from leporello.retrievers.index.postings import best_chunks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Words that begin with a capital, side by side; a small word may stand between: `Duke of York`.
_NAME = regex.compile(r"\p{Lu}[\w'’-]+(?:\s(?:(?:of|the|de|von|van)\s)?\p{Lu}[\w'’-]+){0,4}")
_STEPS = 30  # of the walk; what is left then is below the sixth digit


@dataclass(frozen=True)
class EntityGraph:
    """Personalised PageRank over names and passages (HippoRAG: Gutiérrez et al., NeurIPS 2024).

    Each name that two passages or more have is a node beside the passages, and leads to all that
    have it. A walk begins at the names of the question and at what another retriever finds, and
    goes back there again and again. So a passage is found that has none of the question's words,
    and a name of one that has. Names are told by their capitals: scripts without have none.

    Attributes:
        retriever: Retriever whose hits the walk begins at, by their scores; let it return many.
        k: Number of chunks a question gets.
        damping: Chance that the walk goes on, 0 to 1; 0 stays where it begins.
        names: Share of the beginnings that are names of the question, 0 to 1.
    """

    retriever: Retriever
    k: Positive = 10
    damping: Share = 0.5
    names: Share = 0.3

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k passages of each example in which the walk is most often."""
        if not chunks:
            return [[] for _ in examples]
        document = chunks[0].document
        key = ("entity graph", spans_hash(document, chunks))
        graph: _Graph = document.memo(key, partial(_Graph, chunks))
        found = retrieve(self.retriever, examples, chunks)
        walks = (
            graph.walk(example.question, hits, self.damping, self.names)[None]
            for example, hits in zip(examples, found, strict=True)
        )
        return best_chunks(walks, chunks, self.k)


class _Graph:
    """Who stands where, as a matrix of steps: passages first, then names."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        from scipy import sparse

        self.number = {chunk: n for n, chunk in enumerate(chunks)}
        holding: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for number, chunk in enumerate(chunks):
            for name in names_in(chunk.text):
                holding[name][number] += 1
        shared = {name: at for name, at in holding.items() if len(at) > 1}
        self.names = {name: len(chunks) + n for n, name in enumerate(sorted(shared))}
        self.size = len(chunks) + len(self.names)
        edges = [
            (self.names[name], number, count / len(at))  # a name of many leads to none for sure
            for name, at in shared.items()
            for number, count in at.items()
        ]
        rows, columns, weights = zip(*edges, strict=True) if edges else ((), (), ())
        shape = (self.size, self.size)
        half: Any = sparse.csr_matrix((weights, (rows, columns)), shape)
        both = half + half.T
        sums = both.sum(axis=0).A1
        sums[sums == 0] = 1.0
        self.steps = both @ sparse.diags(1 / sums)

    def walk(
        self, question: str, hits: Sequence[Hit], damping: float, share: float
    ) -> NDArray[np.float64]:
        """Returns how often a walk is in each passage, rounded, shape (passages,)."""
        import numpy as np

        begin, asked = np.zeros(self.size), np.zeros(self.size)
        lowest = min((hit.score for hit in hits), default=0.0)
        for hit in hits:
            if hit.chunk in self.number:  # else widened or joined, and no passage of the graph
                begin[self.number[hit.chunk]] += hit.score - min(lowest, 0.0)
        for name in names_in(question):
            if name in self.names:
                asked[self.names[name]] += 1
        parts = [(1 - share, begin), (share, asked)]
        known = [(weight, part / part.sum()) for weight, part in parts if part.sum()]
        if not known:
            return np.zeros(len(self.number))
        start = sum(weight * part for weight, part in known) / sum(weight for weight, _ in known)
        place = start
        for _ in range(_STEPS):
            place = (1 - damping) * start + damping * (self.steps @ place)
        visits: NDArray[np.float64] = place[: len(self.number)].round(9)
        return visits


def names_in(text: str) -> list[str]:
    """Returns the names of a text in small letters, whole and word by word."""
    small = {word for word in re.findall(r"[\w'’-]+", text) if word[:1].islower()}
    found = []
    for match in _NAME.finditer(text):
        words = [word.lower() for word in re.findall(r"[\w'’-]+", match.group())]
        if len(words) > 1:
            found.append(" ".join(words))
        # A word that the text has in small letters too opened a sentence.
        found += [word for word in words if word not in small and len(word) > 1]
    return found
