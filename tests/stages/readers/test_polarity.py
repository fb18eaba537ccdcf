"""Opinions judged by their words, with the shipped weights."""

from __future__ import annotations

import math

import pytest

from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Read
from leporello.readers import Polarity
from leporello.text.english.polarity import opinion_words

CHOICES = ("good", "bad")
GOOD = "The staff were friendly and the room was lovely, clean and quiet. I highly recommend it."
BAD = "A boring, predictable mess: the plot makes no sense and the jokes are not funny at all."


def test_opinions_are_told_apart() -> None:
    """The shipped weights know a good hotel from a bad film; scores are log-probabilities."""
    outputs = checked_read(Polarity(), [Read((text,), choices=CHOICES) for text in (GOOD, BAD)])
    assert [output.text for output in outputs] == ["good", "bad"]
    assert all(sum(map(math.exp, output.scores)) == pytest.approx(1) for output in outputs)


def test_a_negation_turns_words() -> None:
    """Up to three words behind it, in tokenised text too."""
    assert opinion_words("It is n't very good, really.") == {
        "it", "isn't", "not very", "not good", "really",
    }  # fmt: skip
    reader = Polarity()
    assert reader.log_odds("This is not good.") < 0 < reader.log_odds("This is good.")


def test_two_choices_are_needed() -> None:
    """A question without choices is refused."""
    with pytest.raises(ValueError, match="two choices"):
        Polarity().read([Read((GOOD,))])
