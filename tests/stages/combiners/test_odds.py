"""Log odds of pairs, averaged over neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from leporello.combiners import AssignAuthors


def test_smoothing_finds_the_author_whom_the_single_pair_hides() -> None:
    """The most similar paragraph is that whose neighbours are similar too."""
    authors = [1, 1, 1, 2, 2, 2, 1, 1, 1]
    likeness = np.array([[0.8 if a == b else 0.2 for b in authors] for a in authors])
    likeness[6, 4] = likeness[4, 6] = 0.9  # one pair misleads
    misled = authors_of(AssignAuthors(compare="changed"), likeness)
    assert misled[6] == 2
    assert authors_of(AssignAuthors(compare="changed", smoothing=1), likeness) == authors


def authors_of(combiner: AssignAuthors, likeness: Any) -> Any:
    """Returns the authors that a combiner finds."""
    answer: Any = combiner.decide(likeness)
    return answer["paragraph-authors"]
