"""Tests of clauses of arbitrary texts, and of options with letters."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.readers.embedded.choices import lettered_options
from leporello.text.english.clauses import clause_spans

TEXTS = st.text(alphabet=st.sampled_from("ab Z.,;:()\n1é 語！\u2028\ud800"), max_size=120)


@given(TEXTS, st.integers(1, 5))
def test_clauses_contain_all_words_in_order(text: str, longest: int) -> None:
    spans = clause_spans(text, longest)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(
        text.split()
    )
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(text[s:e] == text[s:e].strip() != "" for s, e in spans)
    assert all(len(text[start:end].split()) <= longest for start, end in spans)


def test_the_items_of_a_list_are_clauses() -> None:
    text = "It excludes: (a) what is public; (b) what was known. Dr. No signs."
    clauses = [text[start:end] for start, end in clause_spans(text)]
    assert clauses == [
        "It excludes:",
        "(a) what is public;",
        "(b) what was known.",
        "Dr. No signs.",
    ]


QUESTION = "Who came?\n(A) Ann, with a boat\n(B) Bob\n and his dog\n(C) (nobody)"


@pytest.mark.parametrize("choices", [("A", "B", "C"), ("(A)", "(B)", "(C)")])
def test_letters_refer_to_the_options_in_a_question(choices: tuple[str, ...]) -> None:
    question, options = lettered_options(QUESTION, choices)
    assert question == "Who came?"
    assert options == ("Ann, with a boat", "Bob\n and his dog", "(nobody)")


@pytest.mark.parametrize("choices", [("Ann", "Bob"), ("A", "D"), (), ("A", "Bob"), ("語", "本")])
def test_choices_without_options_are_texts(choices: tuple[str, ...]) -> None:
    assert lettered_options(QUESTION, choices) == (QUESTION, choices)
