"""Clauses of texts and traits of options, on texts of any kind."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.text.english.clauses import clause_spans, clause_vectors
from leporello.text.english.options import TRAITS, lettered_options, traits

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


@given(st.lists(TEXTS, max_size=4))
def test_vectors_have_length_one_or_none(clauses: list[str]) -> None:
    """A clause without terms is all zeros."""
    if clauses:
        lengths = np.sqrt(clause_vectors(clauses, 64).power(2).sum(axis=1))
        assert all(np.isclose(length, 1) or length == 0 for length in np.ravel(lengths))


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=5))
def test_traits_are_shares(question: str, options: list[str]) -> None:
    """Every option has every trait, between none and all of it; equal options have the same."""
    rows = np.array(traits(question, options))
    assert rows.shape == (len(options), len(TRAITS))
    assert ((rows >= 0) & (rows <= 1)).all()
    same = np.array(traits(question, [options[0]] * 3))
    assert (same == same[0]).all()


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
