"""Selects hits that are relevant to the question and differ from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import Positive, Retriever, Share
from leporello.core.records import Chunk, Example, Hit


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
