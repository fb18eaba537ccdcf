"""Log odds of pairs, averaged over neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from leporello.combiners import AssignAuthors
from leporello.combiners.lists.author_pairs import averaged, log_odds, smoothed

NAN = float("nan")


def test_means_are_over_what_is_known_around() -> None:
    """What was not read counts for nothing; where nothing is known, nothing is decided."""
    odds = np.full((5, 5), NAN)
    odds[0, 1] = odds[1, 0] = 2.0
    found = averaged(odds, 1)
    assert found[0, 0] == pytest.approx(2.0)
    assert found[4, 4] == 0.0
    assert np.allclose(found, found.T)


def test_one_sure_pair_does_not_outweigh_many() -> None:
    """Certainty is bounded, so that a single 1 or 0 is one voice among others."""
    likeness = np.full((3, 3), 0.2)
    likeness[1, 1] = 1.0
    assert np.isfinite(log_odds(likeness)).all()
    assert smoothed(likeness, 1)[1, 1] < 0.5


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
