"""Tests of combiners that rewrite the question into queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from one_example import run_example

from leporello.chunkers import Paragraphs
from leporello.combiners import Decompose, HyDE, Iterative, MultiQuery, Stuff
from leporello.combiners.rewriting.fused_queries import rewordings
from leporello.config import Pipeline
from leporello.core.records import Document, Example, Output, Read
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
    """Reader whose outputs are texts in turn; it repeats the last one."""

    texts: list[str]
    generates: bool = True

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        return [Output(self.texts.pop(0) if self.texts[1:] else self.texts[0]) for _ in inputs]


def _run(
    combiner: Any, outputs: Sequence[str], question: str = QUESTION, k: int = 1, writes: bool = True
) -> tuple[ActiveExample, list[Read]]:
    reader: Any = Scripted([*outputs], writes)
    stages = Pipeline(Paragraphs(size=15), BM25(k=k), reader, combiner)
    active, rounds = run_example(stages, Example("e", TALE, question=question))
    return active, [read for reads in rounds for read in reads]


def _texts(read: Read) -> list[str]:
    return [p if isinstance(p, str) else p.text.split(".")[0] for p in read.passages]


EMBEDDED = Embedded()
FOOTWEAR = "Footwear of that hue was rare in those days"
BOOTS = "The youngest had nothing but the cat"
ANNA = "Anna painted the boots"
OGRE = "Bruges has a castle of an ogre"


def test_hyde_finds_passages_that_share_no_word_with_the_question() -> None:
    active, [request, read] = _run(HyDE(Stuff()), ["Rare footwear of such hue was", "red"], k=2)
    assert (request.passages, request.question) == ((), QUESTION)
    assert FOOTWEAR in _texts(read)
    assert (len(read.passages), active.value, active.notes) == (2, "red", [])


def test_hyde_searches_with_a_first_answer_if_the_reader_does_not_generate() -> None:
    active, [first, read] = _run(HyDE(Stuff(), hits=1), ["The cat ate an ogre."], k=2, writes=False)
    assert (_texts(first), first.instruction) == ([BOOTS], "")
    assert _texts(read) == [BOOTS, OGRE]
    assert "the reader writes no passages" in active.notes[0]
    _, [_, read] = _run(HyDE(Stuff()), ["none", "red"], k=1, writes=False)
    assert _texts(read) == [BOOTS]


def test_hits_of_several_queries_are_fused_by_rank() -> None:
    outputs = ["Here are two:\n1. Which ogre?\n- ogre of Bruges\n3. The miller?", "x"]
    active, [request, read] = _run(MultiQuery(Stuff(), queries=2), outputs)
    assert "2 other ways" in request.instruction
    assert _texts(read) == [OGRE]
    assert {hit.chunk.text.split(".")[0] for hit in active.hits} == {BOOTS, OGRE}


def test_hits_of_smaller_questions_are_read_in_turn() -> None:
    outputs = ["1. Where is the ogre?\n2. Who had sons, the miller?", "x"]
    _, [split, read] = _run(Decompose(Stuff(), new=1), outputs)
    assert split.passages == ()
    assert _texts(read) == [BOOTS, OGRE, "The miller had three sons"]


def test_steps_of_reasoning_are_queries_until_an_answer() -> None:
    outputs = ["Anna painted them. So what?", "Bruges has an ogre.", "So the answer is red.", "red"]
    active, reads = _run(Iterative(Stuff(), rounds=9, new=1), outputs)
    assert [*map(_texts, reads)] == [
        [BOOTS],
        ["Anna painted them.", BOOTS, ANNA],
        ["Anna painted them.", "Bruges has an ogre.", BOOTS, ANNA, OGRE],
        [BOOTS, ANNA, OGRE],
    ]
    assert active.value == "red"


@pytest.mark.parametrize(
    ("outputs", "count"),
    [
        (["The same ogre.", "The same ogre."], 3),  # contains nothing new
        (["The boots of the cat."], 2),  # finds nothing new
        ([""], 2),
        ([f"Anna {n}." for n in range(50)], 3),
        ([f"Ogre {n} " * 9999 for n in range(50)], 3),
    ],
)
def test_the_number_of_steps_is_limited_for_any_outputs(outputs: list[str], count: int) -> None:
    _, reads = _run(Iterative(Stuff(), rounds=2), outputs)
    assert len(reads) <= count
    assert all(len(text.split()) <= 200 for read in reads for text in _texts(read))


def test_a_rule_rewrites_a_question_in_three_ways() -> None:
    words, phrase, names = rewordings("When was the mill of Anna Bly built in 1820?")
    assert (words, names) == ("mill Anna Bly built 1820", "Anna Bly 1820")
    assert phrase == "the mill of Anna Bly built in 1820"
    assert rewordings("castle") == rewordings("") == rewordings("谁写的？") == []


COMBINERS = (HyDE(Stuff()), MultiQuery(Stuff()), Decompose(Stuff()), Iterative(Stuff()))


@pytest.mark.integration
@pytest.mark.parametrize("combiner", COMBINERS, ids=repr)
def test_the_embedded_reader_works_with_all_of_them(combiner: Any) -> None:
    stages = Pipeline(Paragraphs(size=15), BM25(k=2), EMBEDDED, combiner)
    active, _ = run_example(stages, Example("e", TALE, question=QUESTION))
    assert "red" in str(active.value)
    assert len(active.notes) == 1
    assert len(_run(combiner, ["x"], question=" ")[1]) == 1  # no search without a question
