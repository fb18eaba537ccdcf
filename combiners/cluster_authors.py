"""Authors of paragraphs as clusters that all comparisons together suggest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leporello.combiners.lists.author_pairs import (
    ComparesAuthors,
    answer,
    averaged,
    by_appearance,
    changes_of,
    log_odds,
)
from leporello.core.protocols import Count, NonNegative, Positive, Share
from leporello.core.records import JSON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROUNDS = 10  # of the second step; it settles in two or three


@dataclass(frozen=True)
class ClusterAuthors(ComparesAuthors):
    """Clusters the paragraphs by the log odds that pairs of them are by one author.

    First, agglomerative clustering with average linkage of log odds that were averaged over
    neighbours, since these mostly share their author. Then, again and again, the sequence of
    authors under which paragraphs are closest to their clusters on average and that changes
    seldom (Viterbi). Changes, and whether there are several authors, follow from the authors.

    Attributes:
        threshold: Probability of `same` down to which clusters are joined.
        max_authors: Number of clusters at most. None sets no bound. PAN has up to 4.
        smoothing: Number of paragraphs to either side over which log odds are averaged.
        change_penalty: Log odds that a change of authors must bring; 0 leaves out the second step.
    """

    threshold: Share = 0.5
    max_authors: Positive | None = 4
    smoothing: Count = 2
    change_penalty: NonNegative = 5.0
    context: Positive = field(default=3, kw_only=True)

    def decide(self, likeness: NDArray[np.float64]) -> JSON:
        """Returns PAN's three answers; see `ComparesAuthors`."""
        authors = self._cluster(likeness)
        # Changes follow from the authors, since all evidence is in these (decision 16).
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
    np.fill_diagonal(distances, 0.0)
    options = {"metric": "precomputed", "linkage": "average"}
    model = AgglomerativeClustering(n_clusters=None, distance_threshold=1 - threshold, **options)
    labels = model.fit_predict(distances)
    if max_authors and labels.max() >= max_authors:
        labels = AgglomerativeClustering(n_clusters=max_authors, **options).fit_predict(distances)
    return [int(label) for label in labels]


def _converged(odds: NDArray[np.float64], clusters: list[int], penalty: float) -> list[int]:
    """Returns the clusters once the best sequence of authors is the one it was found from."""
    import numpy as np

    for _ in range(_ROUNDS):
        labels = np.array(clusters)
        closeness = [odds[:, labels == label].mean(axis=1) for label in sorted(set(clusters))]
        sequence = _best_sequence(np.stack(closeness, axis=1), penalty)
        if by_appearance(sequence) == by_appearance(clusters):
            break
        clusters = sequence
    return clusters


def _best_sequence(closeness: NDArray[np.float64], penalty: float) -> list[int]:
    """Returns the column for each row with the largest sum, less the penalty for each change."""
    import numpy as np

    best, came_from = closeness[0], []
    columns = np.arange(closeness.shape[1])
    for row in closeness[1:]:
        other = int(best.argmax())
        came_from.append(np.where(best >= best[other] - penalty, columns, other))
        best = np.maximum(best, best[other] - penalty) + row
    sequence = [int(best.argmax())]
    for earlier in reversed(came_from):
        sequence.append(int(earlier[sequence[-1]]))
    return sequence[::-1]
