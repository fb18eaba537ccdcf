"""Other words than the question's: what is searched with, what is found, what is then read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from one_example import run_example

from leporello.chunkers import Paragraphs
from leporello.combiners import Decompose, HyDE, Iterative, MultiQuery, Stuff
from leporello.combiners.rewriting.wording import rewordings
from leporello.config import Pipeline
from leporello.core.records import Document, Example, Output, Read, Span
from leporello.engine.active_example import ActiveExample
from leporello.readers import Embedded
from leporello.retrievers import BM25

TALE = Document(
    "t",
    "The miller had three sons. The eldest took the mill, the second took the donkey.\n\n"
    "The youngest had nothing but the cat. The boots of the cat were red.\n\n"
    "Anna painted the boots. She lived in Bruges, beside the painter Carl.\n\n"
    "Bruges has a castle of an ogre. He became a mouse, and the cat ate him.\n\n"
    "Footwear of that hue was rare in those days.\n",
)
QUESTION = "What colour were the boots of the cat?"


@dataclass(frozen=True)
class Scripted:
    """Answers with texts, one after the other, the last one for ever."""

    texts: list[str]
    generates: bool = True

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        return [Output(self.texts.pop(0) if self.texts[1:] else self.texts[0]) for _ in inputs]


def _run(
    combiner: Any, said: Sequence[str], question: str = QUESTION, k: int = 1, *, writes: bool = True
) -> tuple[ActiveExample, list[Read]]:
    """Runs an example to its end with a reader that says these texts; returns all that it read."""
    reader: Any = Scripted([*said], writes)
    stages = Pipeline(Paragraphs(size=15), BM25(k=k), reader, combiner)
    active, rounds = run_example(stages, Example("e", TALE, question=question))
    return active, [read for reads in rounds for read in reads]


def _texts(read: Read) -> list[str]:
    return [p if isinstance(p, str) else p.text.split(".")[0] for p in read.passages]


FOOTWEAR = "Footwear of that hue was rare in those days"
BOOTS = "The youngest had nothing but the cat"
ANNA = "Anna painted the boots"
OGRE = "Bruges has a castle of an ogre"


def test_a_made_up_passage_finds_what_shares_no_word_with_the_question() -> None:
    """It is written before anything is read; as many hits are read as without it."""
    active, [written, read] = _run(HyDE(Stuff()), ["Rare footwear of such hue was", "red"], k=2)
    assert (written.passages, written.question) == ((), QUESTION)
    assert FOOTWEAR in _texts(read)
    assert (len(read.passages), active.value, active.notes) == (2, "red", [])


def test_a_reader_that_does_not_write_answers_from_the_best_hits_first() -> None:
    """That is searched with, and noted; where it says nothing, the question's hits are read."""
    active, [first, read] = _run(HyDE(Stuff(), hits=1), ["The cat ate an ogre."], k=2, writes=False)
    assert (_texts(first), first.instruction) == ([BOOTS], "")
    assert _texts(read) == [BOOTS, OGRE]
    assert "the reader writes no passages" in active.notes[0]
    active, [_, read] = _run(HyDE(Stuff()), ["none", "red"], k=1, writes=False)
    assert _texts(read) == [BOOTS]


def test_other_wordings_vote_by_rank() -> None:
    """Two that agree outweigh the question; numbers and bullets of the list fall away."""
    said = ["Here are two:\n1. Which ogre?\n- ogre of Bruges\n3. The miller?", "x"]
    active, [written, read] = _run(MultiQuery(Stuff(), queries=2), said)
    assert "2 other ways" in written.instruction
    assert _texts(read) == [OGRE]
    assert {hit.chunk.text.split(".")[0] for hit in active.hits} == {BOOTS, OGRE}


def test_smaller_questions_are_searched_and_read_by_turns() -> None:
    """Each adds what is new to it, at most so many."""
    said = ["1. Where is the ogre?\n2. Who had sons, the miller?", "x"]
    _, [split, read] = _run(Decompose(Stuff(), new=1), said)
    assert split.passages == ()
    assert _texts(read) == [BOOTS, OGRE, "The miller had three sons"]


def test_answers_to_smaller_questions_stand_in_later_ones() -> None:
    """They are passages of their own, which stand for what they were made from."""
    said = ["Who painted the boots?\nWho ate the ogre in the town of #1?", "Bruges", "none", "x"]
    active, [_, first, second, last] = _run(Decompose(Stuff(), answered=True), said)
    assert (first.question, _texts(first)) == ("Who painted the boots?", [ANNA])
    assert second.question == "Who ate the ogre in the town of Bruges?"
    assert _texts(last)[0] == "Who painted the boots? Bruges"
    assert _texts(last)[1:] == [BOOTS, ANNA, OGRE]
    start = TALE.text.index(ANNA)
    assert active.stood_for == [Span(start, TALE.text.index("\n\nBruges"))]


def test_steps_of_reasoning_are_searched_until_enough_is_known() -> None:
    """Each step sees those before it, in front of what was found; a last one only says so."""
    said = ["Anna painted them. So what?", "Bruges has an ogre.", "So the answer is red.", "red"]
    active, reads = _run(Iterative(Stuff(), rounds=9, new=1), said)
    assert [_texts(read) for read in reads] == [
        [BOOTS],
        ["Anna painted them.", BOOTS, ANNA],
        ["Anna painted them.", "Bruges has an ogre.", BOOTS, ANNA, OGRE],
        [BOOTS, ANNA, OGRE],
    ]
    assert active.value == "red"


@pytest.mark.parametrize(
    ("said", "count"),
    [
        (["The same ogre.", "The same ogre."], 3),  # says nothing new
        (["The boots of the cat."], 2),  # finds nothing new
        ([""], 2),
        ([f"Anna {n}." for n in range(50)], 3),
        ([f"Ogre {n} " * 9999 for n in range(50)], 3),
    ],
)
def test_steps_come_to_an_end_whatever_is_said(said: list[str], count: int) -> None:
    """At the latest after as many as were asked for."""
    _, reads = _run(Iterative(Stuff(), rounds=2), said)
    assert len(reads) <= count
    assert all(len(text.split()) <= 200 for read in reads for text in _texts(read))


def test_without_a_question_nothing_is_searched() -> None:
    """A summary is read as it is without them."""
    for combiner in COMBINERS:
        assert len(_run(combiner, ["x"], question=" ")[1]) == 1


def test_a_rule_rewords_a_question() -> None:
    """Without function words, as a statement, by its names; what says nothing else is left out."""
    assert rewordings("When was the mill of Anna Bly built in 1820?") == [
        "mill Anna Bly built 1820",
        "the mill of Anna Bly built in 1820",
        "Anna Bly 1820",
    ]
    assert rewordings("castle") == rewordings("") == []
    assert rewordings("谁写的？") == []


COMBINERS = (
    HyDE(Stuff()),
    MultiQuery(Stuff()),
    Decompose(Stuff()),
    Decompose(Stuff(), answered=True),
    Iterative(Stuff()),
)


@pytest.mark.integration
@pytest.mark.parametrize("combiner", COMBINERS, ids=repr)
def test_the_package_s_own_reader_answers_through_them(combiner: Any) -> None:
    """By rule, and says so; every hit is of the document."""
    stages = Pipeline(Paragraphs(size=15), BM25(k=2), Embedded(), combiner)
    active, _ = run_example(stages, Example("e", TALE, question=QUESTION))
    assert "red" in str(active.value)
    assert len(active.notes) == 1
