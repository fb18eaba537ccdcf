"""Tests of English: questions and those within them, statements, clauses, options, common words."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.readers.embedded.choices import lettered_options
from leporello.text.english.questions import (
    Nested,
    asks_for_a_name,
    asks_for_a_reason,
    asks_for_several,
    asks_yes_no,
    is_statement,
    named_choices,
)
from leporello.text.english.terms import clause_spans
from leporello.text.looks import looks_english

TEXTS = st.text(alphabet=st.sampled_from("ab Z.,;:()\n1é 語！\u2028\ud800"), max_size=120)


@given(TEXTS, st.integers(1, 5))
def test_clauses_contain_all_words_in_order(text: str, longest: int) -> None:
    spans = clause_spans(text, longest)
    parts = [text[start:end] for start, end in spans]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(part == part.strip() != "" for part in parts)
    assert all(len(part.split()) <= longest for part in parts)


def test_the_items_of_a_list_are_clauses() -> None:
    clauses = ["It excludes:", "(a) what is public;", "(b) what was known.", "Dr. No signs."]
    text = " ".join(clauses)
    assert [text[start:end] for start, end in clause_spans(text)] == clauses


QUESTION = "Who came?\n(A) Ann, with a boat\n(B) Bob\n and his dog\n(C) (nobody)"
OPTIONS = ("Ann, with a boat", "Bob\n and his dog", "(nobody)")


@pytest.mark.parametrize("choices", [("A", "B", "C"), ("(A)", "(B)", "(C)")])
def test_letters_refer_to_the_options_in_a_question(choices: tuple[str, ...]) -> None:
    assert lettered_options(QUESTION, choices) == ("Who came?", OPTIONS)


@pytest.mark.parametrize("choices", [("Ann", "Bob"), ("A", "D"), (), ("A", "Bob"), ("語", "本")])
def test_choices_without_options_are_texts(choices: tuple[str, ...]) -> None:
    assert lettered_options(QUESTION, choices) == (QUESTION, choices)


def test_questions_that_begin_with_a_verb_ask_for_yes_or_no() -> None:
    assert all(map(asks_yes_no, ["Is it red?", "Didn't she go?"]))
    assert not any(map(asks_yes_no, ["Is it red or blue?", "What is red?", ""]))


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which is older, Oslo or Bergen?", ("Oslo", "Bergen")),
        ("Who was born first, Ann Lee or Bo Ray?", ("Ann Lee", "Bo Ray")),
        ("Was Ann Lee or Bo Ray born first?", ("Ann Lee", "Bo Ray")),
        ("Is the Fort of Hull or Hull Airport further west?", ("the Fort of Hull", "Hull Airport")),
        ("Which film came out first, Jaws or Now, Voyager?", ("Jaws", "Now, Voyager")),
        ("Who was born first out of Ann Lee and Bo Ray?", ("Ann Lee", "Bo Ray")),
        ("Between Ann Lee and Bo Ray who is older?", ("Ann Lee", "Bo Ray")),
    ],
)
def test_names_to_choose_from_are_found(question: str, names: tuple[str, str]) -> None:
    assert named_choices(question) == names


@pytest.mark.parametrize(
    "question",
    ["Who was born first?", "Is it this or that?", "What flows between Oslo and Hull?", ""],
)
def test_other_questions_have_no_names_to_choose_from(question: str) -> None:
    assert named_choices(question) is None


@pytest.mark.parametrize(
    ("question", "inner", "outer"),
    [
        ("Where was the author of Emma born?",
         "Who is the author of Emma?", "Where was {} born?"),
        ("Who is the spouse of the director of film Up, Down, Fragile?",
         "Who is the director of film Up, Down, Fragile?", "Who is the spouse of {}?"),
        ("When did Henry Grey, 4th Earl of Kent's father die?",
         "Who is the father of Henry Grey, 4th Earl of Kent?", "When did {} die?"),
        ("Who owns the record label of Ann Lee?",
         "What is the record label of Ann Lee?", "Who owns {}?"),
        ("Who sings with the Moon River (Live) performer?",
         "Who is the performer of Moon River (Live)?", "Who sings with {}?"),
        ('Where did the singer of "moon river" live?',
         'Who is the singer of "moon river"?', "Where did {} live?"),
        ("Who is the child of the person who wrote the report?",
         "Who wrote the report?", "Who is the child of {}?"),
        ("What year did the company that sold Starlight end?",
         "Which company sold Starlight?", "What year did {} end?"),
        ("Who ruled the country where Ann Lee lived?",
         "In which country Ann Lee lived?", "Who ruled {}?"),
    ],
)  # fmt: skip
def test_the_inner_question_is_answered_first(question: str, inner: str, outer: str) -> None:
    assert Nested.of(question) == Nested(inner, outer)


@pytest.mark.parametrize(
    "question",
    [
        "Who is the author of Emma?",
        "What is the name of the father of Ann Lee?",
        "Who is the actor who plays Hamlet?",
        "Who is Ann Lee's father-in-law?",
        "Where did the people who were from what town go?",
        "What does the report say?",
        "",
    ],
)
def test_questions_of_one_step_contain_no_other(question: str) -> None:
    assert Nested.of(question) is None


def test_plural_nouns_and_numbers_ask_for_several_things() -> None:
    several = ["Which colours do they use?", "What are the rules?", "Name the two towns", "List it"]
    single = ["What year does it end?", "Which bus was late?", "Who has two hats?"]
    assert all(map(asks_for_several, several))
    assert not any(map(asks_for_several, single))


def test_questions_ask_for_a_name_or_a_reason() -> None:
    assert all(map(asks_for_a_name, ["Who?", "In which year?", "How many are there?", "How fast?"]))
    assert all(map(asks_for_a_reason, ["Why?", "How did it end?", "Explain the plan"]))
    assert not any(map(asks_for_a_name, ["How is it?", "What is used?", "Whole grains?"]))
    assert not any(map(asks_for_a_reason, ["How many?", "How quickly did it go?", "What?", "Who?"]))


def test_statements_differ_from_questions_and_orders() -> None:
    disclosure = "Receiving Party shall not reverse engineer objects which it embodies."
    assert all(map(is_statement, ["The tenant pays for repairs.", disclosure]))
    others = ["Who pays for repairs?", "List the repairs.", "Is it red.", "repairs"]
    assert not any(map(is_statement, others))


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
