"""Which text of a story comes first, with the shipped weights."""

from __future__ import annotations

import pytest

from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Read
from leporello.readers import Precedence

FIRST = "The story begins in a small town, where a young man named Tom lives with his mother."
LAST = "In the end he kills the guard, reveals the truth and the story ends with his escape."


def test_a_beginning_comes_before_an_end() -> None:
    """The shipped weights know one from the other; turned round, the probability is the rest."""
    pairs = [(FIRST, LAST), (LAST, FIRST)]
    reads = [Read(pair, pair=pair) for pair in pairs]
    right, wrong = (output.score for output in checked_read(Precedence(), reads))
    assert right is not None
    assert wrong is not None
    assert right > 0.5 > wrong
    assert right + wrong == pytest.approx(1)


def test_a_pair_is_needed() -> None:
    """Passages without a pair are refused."""
    with pytest.raises(ValueError, match="pairs of texts"):
        Precedence().read([Read((FIRST,))])
