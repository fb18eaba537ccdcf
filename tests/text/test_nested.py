"""Tests of questions within English questions."""

import pytest

from leporello.text.english.questions import Nested


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
