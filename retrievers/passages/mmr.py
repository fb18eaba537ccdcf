"""Hits that answer the question and do not repeat each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import Positive, Retriever, Share
from leporello.core.records import Chunk, Example, Hit


@dataclass(frozen=True)
class MMR:
    """Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998).

    Takes hits of another retriever one after the other: each time the one whose score, less its
    likeness to those taken, is highest. Scores are divided by the best one; likeness is the cosine
    of TF-IDF vectors over the hits.

    Attributes:
        retriever: Retriever whose hits are chosen from; let it return more than k.
        k: Number of chunks a question gets.
        diversity: Weight of likeness against that of the score, 0 to 1; 0 changes no order.
    """

    retriever: Retriever
    k: Positive = 10
    diversity: Share = 0.3

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the chosen hits of each example; scores are what each added."""
        return [*map(self._choose, retrieve(self.retriever, examples, chunks))]

    def _choose(self, hits: Sequence[Hit]) -> list[Hit]:
        if not any(hit.score for hit in hits):  # nothing is known of them
            return [*hits[: self.k]]
        import numpy as np
        from sklearn.feature_extraction.text import TfidfVectorizer

        # Every character but white space is a word's: chunks of signs alone have words too.
        texts = TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True)  # noqa: S106 -- no password
        blank = not any(hit.chunk.text.strip() for hit in hits)
        vectors = texts.fit_transform(["-" if blank else hit.chunk.text for hit in hits])
        alike = (vectors @ vectors.T).toarray()
        top = max((abs(hit.score) for hit in hits), default=0.0) or 1.0
        scores = (1 - self.diversity) * np.array([hit.score / top for hit in hits])
        nearest, chosen = np.zeros(len(hits)), list[Hit]()
        for _ in range(min(self.k, len(hits))):
            marginal = scores - self.diversity * nearest
            best = int(marginal.argmax())
            chosen.append(Hit(hits[best].chunk, round(float(marginal[best]), 6)))
            nearest, scores[best] = np.maximum(nearest, alike[best]), -np.inf
        return chosen
