"""Clauses of texts and traits of options, on texts of any kind."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.readers.embedded.choices import lettered_options
from leporello.text.english.clauses import clause_spans

TEXTS = st.text(alphabet=st.sampled_from("ab Z.,;:()\n1é 語！\u2028\ud800"), max_size=120)


@given(TEXTS, st.integers(1, 5))
def test_clauses_hold_all_ink_in_order(text: str, longest: int) -> None:
    """Nothing but blanks lies between them, and none is longer than it may be."""
    spans = clause_spans(text, longest)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(
        text.split()
    )
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(text[s:e] == text[s:e].strip() != "" for s, e in spans)
    assert all(len(text[start:end].split()) <= longest for start, end in spans)


def test_the_items_of_a_list_are_clauses() -> None:
    """They are told apart by their marks, and a sentence by its stop."""
    text = "It excludes: (a) what is public; (b) what was known. Dr. No signs."
    found = [text[start:end] for start, end in clause_spans(text)]
    assert found == [
        "It excludes:",
        "(a) what is public;",
        "(b) what was known.",
        "Dr. No signs.",
    ]


QUESTION = "Who came?\n(A) Ann, with a boat\n(B) Bob\n and his dog\n(C) (nobody)"


@pytest.mark.parametrize("choices", [("A", "B", "C"), ("(A)", "(B)", "(C)")])
def test_letters_stand_for_the_options_in_a_question(choices: tuple[str, ...]) -> None:
    """ZeroSCROLLS' layout; an option may have several lines."""
    question, options = lettered_options(QUESTION, choices)
    assert question == "Who came?"
    assert options == ("Ann, with a boat", "Bob\n and his dog", "(nobody)")


@pytest.mark.parametrize("choices", [("Ann", "Bob"), ("A", "D"), (), ("A", "Bob"), ("語", "本")])
def test_other_choices_are_their_own_texts(choices: tuple[str, ...]) -> None:
    """SCROLLS' layout; and letters that the question does not tell of."""
    assert lettered_options(QUESTION, choices) == (QUESTION, choices)
