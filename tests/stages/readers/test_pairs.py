"""Tests of questions about two things, with the models of the package."""

import pytest

from leporello.core.records import Document, Output, Read
from leporello.readers import Embedded
from leporello.readers.embedded.pairs import date_question, value_questions
from leporello.text.english.questions import named_choices

BORN = "When was {} born?"


@pytest.mark.parametrize(
    ("question", "event", "earlier"),
    [
        ("Who was born first, Ann Lee or Bo Ray?", BORN, True),
        ("Was Ann Lee or Bo Ray born later?", BORN, False),
        ("Which tennis player is older, Ann Lee or Bo Ray?", BORN, True),
        ("Who died last, Ann Lee or Bo Ray?", "When did {} die?", False),
        ("Which film came out first, Jaws or Alien?", "When was {} released?", True),
        ("Which film is newer, Jaws or Alien?", "When was {} released?", False),
        ("Which magazine was first published, Elle or Vogue?", None, True),
        ("Which bridge was built most recently, Forth or Tay?", "When was {} built?", False),
        ("Did the Battle of Hull or the Siege of York end first?", "When did {} end?", True),
        ("Which university is older, Hull or York?", "When was {} founded?", True),
        ("Which film has the older director, Jaws or Alien?", None, True),
        ("Which mountain is taller, Etna or Hekla?", None, True),
    ],
)
def test_the_date_of_one_thing_is_asked_for(
    question: str, event: str | None, earlier: bool
) -> None:
    names = named_choices(question)
    assert names is not None
    assert date_question(question, names) == (event and (event, earlier))


LIVES = (
    "Ann Lee was an engineer. She was born on 4 May 1861 in Hull.",
    "Bo Ray was a painter, born in York on 7 June 1855. He knew Ann Lee.",
    "Cy Gray (13 May 194018 January 1989) was a singer from Leeds.",
    "Di Hart was a judge who lived in York.",
    "Ed Orr was a poet, born in 350 BC in Rome.",
    "Fy Ash was a cook, born in 120 BC in Rome.",
)


def _read(question: str) -> Output:
    document = Document("d", "\n\n".join(LIVES))
    starts = [document.text.index(text) for text in LIVES]
    passages = [document.chunk(s, s + len(t)) for s, t in zip(starts, LIVES, strict=True)]
    [output] = Embedded().read([Read(tuple(passages), question)])
    return output


@pytest.mark.parametrize(
    ("question", "answer", "date"),
    [
        ("Who was born first, Ann Lee or Bo Ray?", "Bo Ray", "7 June 1855"),
        ("Who was born later, Ann Lee or Bo Ray?", "Ann Lee", "4 May 1861"),
        ("Who was born first, Fy Ash or Ed Orr?", "Ed Orr", "350 BC"),
        ("Who is younger, Cy Gray or Ann Lee?", "Cy Gray", "13 May 194018 January 1989"),
    ],
)
def test_the_name_is_returned_with_the_place_of_its_date(
    question: str, answer: str, date: str
) -> None:
    output = _read(question)
    assert output.text == answer
    assert output.span is not None
    text = "\n\n".join(LIVES)
    assert text[output.span.start : output.span.end] in date


def test_without_a_date_one_of_the_names_is_returned() -> None:
    assert _read("Who was born first, Di Hart or Ann Lee?").text in ("Di Hart", "Ann Lee")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Are both Ann Lee and Bo Ray from the same town?",
         [("Ann Lee", "What town is Ann Lee from?"), ("Bo Ray", "What town is Bo Ray from?")]),
        ("Did Ann Lee and Bo Ray share the same nationality?",
         [("Ann Lee", "What is the nationality of Ann Lee?"),
          ("Bo Ray", "What is the nationality of Bo Ray?")]),
        ("Are Hull and York, Maine located in the same country?",
         [("Hull", "What country is Hull located in?"),
          ("York, Maine", "What country is York, Maine located in?")]),
        ("Is it the same?", []),
    ],
)  # fmt: skip
def test_the_value_of_one_thing_is_asked_for(
    question: str, expected: list[tuple[str, str]]
) -> None:
    assert value_questions(question) == expected


def test_two_things_have_the_same_if_their_values_agree() -> None:
    assert _read("Were Bo Ray and Di Hart born in the same town?").text == "yes"
    output = _read("Were Ann Lee and Bo Ray born in the same town?")
    assert output.text == "no"
    assert output.span is not None
    assert "\n\n".join(LIVES)[output.span.start : output.span.end] in ("Hull", "York")
