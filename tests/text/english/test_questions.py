"""Tests of kinds of questions, and of recognising English."""

import pytest

from leporello.text.english.questions import (
    asks_for_a_name,
    asks_for_a_reason,
    asks_yes_no,
    is_statement,
    named_choices,
)
from leporello.text.looks import looks_english


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is it red?", True),
        ("Didn't she go?", True),
        ("Is it red or blue?", False),
        ("What is red?", False),
        ("", False),
    ],
)
def test_questions_that_begin_with_a_verb_ask_for_yes_or_no(question: str, expected: bool) -> None:
    assert asks_yes_no(question) is expected


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which is older, Oslo or Bergen?", ("Oslo", "Bergen")),
        ("Who was born first, Ann Lee or Bo Ray?", ("Ann Lee", "Bo Ray")),
        ("Who was born first?", None),
        ("Is it this or that?", None),
        ("", None),
    ],
)
def test_names_to_choose_from_are_found(question: str, names: tuple[str, str] | None) -> None:
    assert named_choices(question) == names


def test_questions_ask_for_a_name_or_a_reason() -> None:
    assert all(map(asks_for_a_name, ["Who?", "In which year?", "How many are there?", "How fast?"]))
    assert all(map(asks_for_a_reason, ["Why?", "How did it end?", "Explain the plan"]))
    assert not any(map(asks_for_a_name, ["How is it?", "What is used?", "Whole grains?"]))
    assert not any(map(asks_for_a_reason, ["How many?", "How quickly did it go?", "What?", "Who?"]))


def test_statements_differ_from_questions_and_orders() -> None:
    assert is_statement("The tenant pays for repairs.")
    assert is_statement("Receiving Party shall not reverse engineer objects which it embodies.")
    assert not is_statement("Who pays for repairs?")
    assert not is_statement("List the repairs.")
    assert not is_statement("Is it red.")
    assert not is_statement("repairs")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She said that the boat was not there, and went to her house. ", True),
        ("Der Hund ist in dem Haus, und was er will, das weiß niemand. ", False),
        ("Le chat est sur la table et il mange une souris avec du pain. ", False),
        ("De hond is in het huis en hij was van de man op de bank. ", False),
        ("El perro está en la casa y no he visto a su madre. ", False),
        ("犬は家の中にいる。何をしたいのか誰も知らない。", False),
    ],
)
def test_english_is_recognised_by_its_most_common_words(text: str, expected: bool) -> None:
    assert looks_english(" ".join([text] * 50)) is expected
    assert looks_english(text.split(maxsplit=1)[0])
