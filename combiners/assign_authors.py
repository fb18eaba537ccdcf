"""Authors of paragraphs one after the other, as MuLD's baseline assigns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leporello.combiners.lists.author_pairs import ComparesAuthors, answer, smoothed
from leporello.core.protocols import Count, Positive, Share
from leporello.core.records import JSON

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class AssignAuthors(ComparesAuthors):
    """Assigns each paragraph to an earlier one's author, or to a new one (MuLD, section 4).

    The first paragraph is by author 1. "Then check if the next paragraph is similar to the
    previous one. If so we assign this to the author of the most similar paragraph if over some
    threshold. If not we add a new author." Several authors, and changes, are what the classifier
    says to neighbours, as the paper has it; so they need not agree with the authors.

    Attributes:
        threshold: Probability of `same` from which on the most similar paragraph has the same
            author; the paper does not give its own.
        change_threshold: Probability from which on a paragraph is similar to the previous.
        compare: Paragraphs that get the author of the most similar one, if over the threshold, and
            a new one if not: `similar` those that are similar to the previous, as the paper writes,
            others being a new author's; `changed` those that are not, others being by the previous
            one's author.
        max_authors: Number of authors at most; then it is the most similar paragraph's author. None
            sets no bound. PAN has up to 4.
        smoothing: Number of paragraphs to either side, of both, over which log odds are averaged to
            find the most similar paragraph; the paper's is 0.
    """

    threshold: Share = 0.5
    change_threshold: Share = 0.5
    compare: Literal["similar", "changed"] = "similar"
    max_authors: Positive | None = 4
    smoothing: Count = 0

    def decide(self, likeness: NDArray[np.float64]) -> JSON:
        """Returns PAN's three answers; see `ComparesAuthors`."""
        # They may contradict the authors: a baseline is reproduced, not mended (decision 16).
        changes = [bool(likely < self.change_threshold) for likely in likeness.diagonal(1)]
        return answer(self._assign(likeness, changes), changes)

    def _assign(self, likeness: NDArray[np.float64], changes: Sequence[bool]) -> list[int]:
        import numpy as np

        similar = smoothed(likeness, self.smoothing) if self.smoothing else likeness
        authors = [1] * min(1, len(likeness))
        for index, changed in enumerate(changes, 1):
            best = int(np.nanargmax(similar[index, :index]))
            over = similar[index, best] >= self.threshold
            count = max(authors)
            if self.compare == "changed" and not changed:
                authors.append(authors[-1])
            elif (over and (self.compare == "changed" or not changed)) or count == self.max_authors:
                authors.append(authors[best])
            else:
                authors.append(count + 1)
        return authors
