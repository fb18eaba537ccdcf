"""Answers with the authors of paragraphs, from comparisons of pairs: in turn, or by clustering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from leporello.combiners.lists.author_pairs import (
    ComparesAuthors,
    answer,
    averaged,
    by_appearance,
    changes_of,
    log_odds,
    smoothed,
)
from leporello.core.protocols import Count, NonNegative, Positive, Share
from leporello.core.records import JSON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class AssignAuthors(ComparesAuthors):
    """Assigns each paragraph to the author of an earlier one, or to a new author (MuLD, section 4).

    The first paragraph is by author 1. "Then check if the next paragraph is similar to the
    previous one. If so we assign this to the author of the most similar paragraph if over some
    threshold. If not we add a new author." The first two answers, several authors and changes, are
    the classifier's decisions on neighbours, as in the paper, so they may contradict the authors.

    Attributes:
        threshold: Probability of `same` at or above which a paragraph has the author of the most
            similar paragraph; the paper does not state its threshold.
        change_threshold: Probability at or above which a paragraph is similar to the previous one.
        compare: Paragraphs that get the author of the most similar paragraph above the threshold,
            or otherwise a new author. `similar`: paragraphs that are similar to the previous one,
            as the paper describes; the others get a new author. `changed`: paragraphs that are not
            similar to the previous one; the others get its author.
        max_authors: Maximum number of authors, after which paragraphs get the author of the most
            similar one. None sets no limit. PAN has up to 4.
        smoothing: Number of paragraphs on either side, for both paragraphs, over which log odds are
            averaged to find the most similar paragraph; 0 in the paper.
    """

    # MuLD states neither threshold; 0.5 means undecided for this classifier (decision 16).
    threshold: Share = 0.5
    change_threshold: Share = 0.5
    # The paper's words; `changed` with five paragraphs gained 10 points (F1 32.0, not 21.5).
    compare: Literal["similar", "changed"] = "similar"
    # Without a limit, each short paragraph could become a new author.
    max_authors: Positive | None = 4
    # 0 as in the paper; averaging raised `changed` from 32.0 to 39.0 (decision 16).
    smoothing: Count = 0

    def decide(self, likeness: NDArray[np.float64]) -> JSON:
        """Returns PAN's three answers; see `ComparesAuthors`."""
        # Changes may contradict the authors, because this reproduces a baseline (decision 16).
        changes = [bool(likely < self.change_threshold) for likely in likeness.diagonal(1)]
        return answer(self._assign(likeness, changes), changes)

    def _assign(self, likeness: NDArray[np.float64], changes: Sequence[bool]) -> list[int]:
        similar = smoothed(likeness, self.smoothing) if self.smoothing else likeness
        authors = [1] * min(1, len(likeness))
        for index, changed in enumerate(changes, 1):
            best = int(similar[index, :index].argmax())
            is_over = similar[index, best] >= self.threshold
            count = max(authors)
            if self.compare == "changed" and not changed:
                authors.append(authors[-1])
            elif (
                is_over and (self.compare == "changed" or not changed)
            ) or count == self.max_authors:
                authors.append(authors[best])
            else:
                authors.append(count + 1)
        return authors


_ROUNDS = 10  # maximum of the second step, which converges in two or three


@dataclass(frozen=True)
class ClusterAuthors(ComparesAuthors):
    """Clusters the paragraphs by the log odds that pairs of them have the same author.

    The first step is agglomerative clustering with average linkage. Its log odds are averaged over
    neighbours, which mostly share their author. The second step repeats Viterbi's algorithm: it
    finds the sequence of authors with the best sum of closeness to clusters and penalties for
    changes. Changes, and whether there are several authors, follow from the authors.

    Attributes:
        threshold: Probability of `same` above which clusters are joined.
        max_authors: Maximum number of clusters. None sets no limit. PAN has up to 4.
        smoothing: Number of paragraphs on either side over which log odds are averaged.
        change_penalty: Log odds that a change of authors costs; 0 leaves out the second step.
    """

    threshold: Share = 0.5
    max_authors: Positive | None = 4
    smoothing: Count = 2
    # Penalties of 10 and 20 gave the same F1 within a point (82.2, 81.9, 82.4).
    change_penalty: NonNegative = 5.0
    # Three paragraphs raised F1 from 58.5 to 77.1. These defaults were chosen in view of all 20
    # development documents, so their scores are too high (decision 16).
    context: Positive = field(default=3, kw_only=True)

    def decide(self, likeness: NDArray[np.float64]) -> JSON:
        """Returns PAN's three answers; see `ComparesAuthors`."""
        authors = self._cluster(likeness)
        # Changes follow from the authors, which use all comparisons (decision 16).
        return answer(authors, changes_of(authors))

    def _cluster(self, likeness: NDArray[np.float64]) -> list[int]:
        if len(likeness) < 2:  # noqa: PLR2004 -- a pair
            return [1] * len(likeness)
        odds = averaged(log_odds(likeness), self.smoothing)
        clusters = _agglomerated(odds, self.threshold, self.max_authors)
        if self.change_penalty:
            clusters = _converged(odds, clusters, self.change_penalty)
        return by_appearance(clusters)


def _agglomerated(
    odds: NDArray[np.float64], threshold: float, max_authors: int | None
) -> list[int]:
    import numpy as np
    from sklearn.cluster import AgglomerativeClustering

    distances = 1 / (1 + np.exp(odds))
    # No comparison of a paragraph with itself exists, but scikit-learn requires this distance.
    np.fill_diagonal(distances, 0.0)
    options = {"metric": "precomputed", "linkage": "average"}
    model = AgglomerativeClustering(n_clusters=None, distance_threshold=1 - threshold, **options)
    labels = model.fit_predict(distances)
    if max_authors and labels.max() >= max_authors:
        # A second fit, because scikit-learn takes either a distance or a number of clusters.
        labels = AgglomerativeClustering(n_clusters=max_authors, **options).fit_predict(distances)
    return [int(label) for label in labels]


def _converged(odds: NDArray[np.float64], clusters: list[int], penalty: float) -> list[int]:
    """Returns the clusters after Viterbi's algorithm no longer changes them."""
    import numpy as np

    for _ in range(_ROUNDS):
        labels = np.array(clusters)
        closeness = [odds[:, labels == label].mean(axis=1) for label in sorted(set(clusters))]
        sequence = _best_sequence(np.stack(closeness, axis=1), penalty)
        # Numbers of clusters are arbitrary, so only the order of appearance compares.
        if by_appearance(sequence) == by_appearance(clusters):
            break
        clusters = sequence
    return clusters


def _best_sequence(closeness: NDArray[np.float64], penalty: float) -> list[int]:
    """Returns a column for each row, with the largest sum of values minus penalties for changes."""
    import numpy as np

    best, predecessors = closeness[0], []
    columns = np.arange(closeness.shape[1])
    for row in closeness[1:]:
        top = int(best.argmax())
        predecessors.append(np.where(best >= best[top] - penalty, columns, top))
        best = np.maximum(best, best[top] - penalty) + row
    sequence = [int(best.argmax())]
    for earlier in reversed(predecessors):
        sequence.append(int(earlier[sequence[-1]]))
    return sequence[::-1]
