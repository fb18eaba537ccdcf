"""Tests that summaries are slices of the texts, in order and within the length."""

from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leporello.models.locate import locate
from leporello.models.weights import ModelFolder
from leporello.readers.embedded.summaries import NOTHING, Summariser, text_of
from leporello.readers.embedded.summary_units import clean, word_count
from leporello.text.english.questions import Wanted, wanted
from leporello.text.english.terms import is_script

MEETING = "\n".join([
    "Ann: {vocalsound} Okay .", "Ben: Yeah .",
    "Ann: The battery of the remote should last for two years at least , I think .",
    "Ben: Then a solar cell is too weak , so we need a kinetic battery in the remote .",
    "Cleo: Lunch is at noon in the canteen on the second floor today .", "Ann: Mm . {disfmarker}",
    "Cleo: The canteen serves soup and bread with cheese on every Tuesday .",
])  # fmt: skip
REPORT = (
    "Wolves return to the valley. The wolves of the valley were counted by the forest office in"
    " spring. The office counted forty wolves in the valley. It rained.\n\nFarmers lost twelve"
    " sheep to wolves in the valley last winter. The forest office pays farmers for lost sheep."
)


@cache
def summariser() -> Summariser:
    return Summariser(ModelFolder(Path(locate("leporello-en")) / "summaries"))


def sentences() -> st.SearchStrategy[str]:
    """Returns a strategy for texts with sentences, turns, marks, other scripts and random text."""
    word = st.sampled_from(["the", "wolf", "Ann:", "{laugh}", "42", "狼。", "!", ".", "\n", "\n\n"])
    random_texts = st.lists(word | st.text(max_size=8), max_size=60).map(" ".join)
    return random_texts | st.sampled_from([MEETING, REPORT])


@settings(max_examples=80)
@given(st.lists(sentences(), max_size=4), st.sampled_from(["", "the wolf?", "Why 狼?"]), st.data())
def test_a_summary_has_slices_in_order(
    texts: list[str], question: str, data: st.DataObject
) -> None:
    words = data.draw(st.none() | st.integers(1, 40))
    units, score = summariser().select(texts, question, words=words)
    spans: list[tuple[int, int, int]] = []
    for number, unit in enumerate(units):
        if unit.name != (0, 0) and unit.paragraph not in {u.paragraph for u in units[:number]}:
            spans.append((unit.text, *unit.name))
        spans.append((unit.text, unit.start, unit.end))
    pieces = [clean(texts[text][start:end]) for text, start, end in spans]
    assert text_of(texts, units).split() == " ".join(pieces).split()
    assert all(0 <= start < end <= len(texts[text]) for text, start, end in spans)
    for before, after in pairwise(spans):
        assert (before[0], before[2]) <= (after[0], after[1])
    if words is not None:
        assert sum(map(word_count, pieces)) <= words
    assert (units, score) == summariser().select(texts, question, words=words)
    assert (score == NOTHING) == (not units)


@pytest.mark.parametrize("texts", [[], [""], ["\n \n", "..."], ["{vocalsound} !"]])
def test_texts_without_words_have_an_empty_summary(texts: list[str]) -> None:
    assert summariser().select(texts, "What?") == ([], NOTHING)


def test_turns_keep_their_speakers_and_lose_their_marks() -> None:
    question = "What did they say about the battery?"
    battery, score = summariser().select([MEETING], question, words=40)
    assert text_of([MEETING], battery).splitlines() == [
        "Ann: The battery of the remote should last for two years at least , I think .",
        "Ben: Then a solar cell is too weak , so we need a kinetic battery in the remote .",
    ]
    canteen, _ = summariser().select([MEETING], "What was said about the canteen?", words=14)
    assert text_of([MEETING], canteen).startswith("Cleo: ")
    assert score > summariser().select([MEETING], "Why is the orbit decaying?")[1]


# Questions, some of them with an instruction after a bar.
QUESTIONS = {
    Wanted.WHOLE: (
        "", "Summarize the whole meeting.", "Summarise this",
        "Give me a short summary of the report",
        "What is the plot of the story?|Answer the question in a paragraph.",
    ),
    Wanted.TOPIC: (
        "Who is Jeff?|Answer the question in a paragraph.",
        "What did Ann think?|Answer the query in one or more sentences.",
        "What did the group discuss about the casing?", "Summarize the discussion on the budget.",
    ),
    Wanted.SHORT: (
        "What is the budget?", "Are Pothos and Tibouchina both plants?", "Why did he leave home?",
        "Who wrote Hamlet?|Answer the question in a single phrase or sentence.",
        "Which datasets do they use?|You are given a scientific article.",
        "Reorder them.|Write a list of 5 of the summary IDs.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("expected", QUESTIONS)
def test_questions_want_summaries_or_answers(expected: Wanted) -> None:
    for question in QUESTIONS[expected]:
        assert wanted(*question.split("|")) is expected, question


def test_questions_about_meetings_often_require_a_summary() -> None:
    assert is_script([MEETING])
    assert not is_script([REPORT])
    assert wanted("Why did Ben reject the solar cell?", texts=[MEETING]) is Wanted.TOPIC
    assert wanted("How long should the battery last?", texts=[MEETING]) is Wanted.SHORT
