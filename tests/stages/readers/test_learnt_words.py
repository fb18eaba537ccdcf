"""Readers of a few shipped weights: opinions, heroes and villains, what comes first in a story."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Document, Read
from leporello.readers import Polarity, Precedence, Presence
from leporello.readers.polarity import opinion_words

GOOD = "The staff were friendly and the room was lovely, clean and quiet. I highly recommend it."
BAD = "A boring, predictable mess: the plot makes no sense and the jokes are not funny at all."
BOOK = Document("book", "Tom ran. " * 100)
FIRST = "The story begins in a small town, where a young man named Tom lives with his mother."
LAST = "In the end he kills the guard, reveals the truth and the story ends with his escape."


def test_opinions_are_told_apart() -> None:
    """The shipped weights know a good hotel from a bad film; scores are log-probabilities."""
    reads = [Read((text,), choices=("good", "bad")) for text in (GOOD, BAD)]
    outputs = checked_read(Polarity(), reads)
    assert [output.text for output in outputs] == ["good", "bad"]
    assert all(sum(map(math.exp, output.scores)) == pytest.approx(1) for output in outputs)


def test_a_negation_turns_words() -> None:
    """Up to three words behind it, in tokenised text too."""
    assert opinion_words("It is n't very good, really.") == {
        "it", "isn't", "not very", "not good", "really",
    }  # fmt: skip
    reader = Polarity()
    assert reader.log_odds("This is not good.") < 0 < reader.log_odds("This is good.")


@pytest.mark.parametrize(
    ("places", "label"),
    [(range(0, 900, 45), "Hero"), (range(0, 45, 9), "Villain/Antagonist"), ([], "Hero")],
)
def test_who_is_there_throughout_is_the_hero(places: Sequence[int], label: str) -> None:
    """As many passages in one part are another thing; none tell nothing: the first choice."""
    chunks = tuple(BOOK.chunk(place, place + 8) for place in places)
    read = Read(chunks, "Tom", choices=("Hero", "Villain/Antagonist"))
    [output] = checked_read(Presence(), [read])
    assert output.text == label


def test_a_beginning_comes_before_an_end() -> None:
    """The shipped weights know one from the other; turned round, the probability is the rest."""
    pairs = [(FIRST, LAST), (LAST, FIRST)]
    reads = [Read(pair, pair=pair) for pair in pairs]
    right, wrong = (output.score for output in checked_read(Precedence(), reads))
    assert right is not None
    assert wrong is not None
    assert right > 0.5 > wrong
    assert right + wrong == pytest.approx(1)


@pytest.mark.parametrize(
    ("reader", "told"),
    [(Polarity(), "two choices"), (Presence(), "two choices"), (Precedence(), "pairs of texts")],
)
def test_what_a_reader_needs_is_told(reader: Any, told: str) -> None:
    """A question without choices, passages without a pair."""
    with pytest.raises(ValueError, match=told):
        reader.read([Read((GOOD,))])
