"""Tests of readers with packaged weights for opinions, heroes, and the order of texts."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from leporello.core.calls.stage_calls import read as checked_read
from leporello.core.records import Document, Read
from leporello.readers import Polarity, Precedence, Presence
from leporello.readers.word_evidence import opinion_words

GOOD = "The staff were friendly and the room was lovely, clean and quiet. I highly recommend it."
BAD = "A boring, predictable mess: the plot makes no sense and the jokes are not funny at all."
BOOK = Document("book", "Tom ran. " * 100)
FIRST = "The story begins in a small town, where a young man named Tom lives with his mother."
LAST = "In the end he kills the guard, reveals the truth and the story ends with his escape."


def test_good_and_bad_opinions_are_recognised() -> None:
    reads = [Read((text,), choices=("good", "bad")) for text in (GOOD, BAD)]
    outputs = checked_read(Polarity(), reads)
    assert [output.text for output in outputs] == ["good", "bad"]
    assert all(sum(map(math.exp, output.scores)) == pytest.approx(1) for output in outputs)


def test_a_negation_changes_the_words_after_it() -> None:
    assert opinion_words("It is n't very good, really.") == {
        "it", "isn't", "not very", "not good", "really",
    }  # fmt: skip
    reader = Polarity()
    assert reader.log_odds("This is not good.") < 0 < reader.log_odds("This is good.")


@pytest.mark.parametrize(
    ("places", "label"),
    [(range(0, 900, 45), "Hero"), (range(0, 45, 9), "Villain/Antagonist"), ([], "Hero")],
)
def test_a_person_in_all_parts_of_a_book_is_the_hero(places: Sequence[int], label: str) -> None:
    chunks = tuple(BOOK.chunk(place, place + 8) for place in places)
    read = Read(chunks, "Tom", choices=("Hero", "Villain/Antagonist"))
    [output] = checked_read(Presence(), [read])
    assert output.text == label


def test_a_beginning_precedes_an_end() -> None:
    pairs = [(FIRST, LAST), (LAST, FIRST)]
    reads = [Read(pair, pair=pair) for pair in pairs]
    right, wrong = (output.score for output in checked_read(Precedence(), reads))
    assert right is not None
    assert wrong is not None
    assert right > 0.5 > wrong
    assert right + wrong == pytest.approx(1)


@pytest.mark.parametrize(
    ("reader", "message"),
    [(Polarity(), "two choices"), (Presence(), "two choices"), (Precedence(), "pairs of texts")],
)
def test_missing_choices_and_pairs_are_reported(reader: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reader.read([Read((GOOD,))])
