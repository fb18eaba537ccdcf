"""Calls of stages: their arguments, and the checks of their results."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from retrieval import chunked, examples_of
from toy_stages import Returning

from leporello import Chunk, Example, Hit, Span
from leporello.core.calls.contracts import StageError
from leporello.core.calls.stage_calls import read, retrieve
from leporello.core.errors import Stopped
from leporello.core.records import Output, Read
from leporello.engine.failures import ExampleError, stage_errors
from leporello.engine.results.serialization import output_row, reply_of
from leporello.retrievers import Fusion, Neighbours

STORY = "The miller had three sons. The eldest got the mill. The second got the donkey."


@dataclass(frozen=True)
class Oracle:
    """Returns the evidence."""

    sees_gold = True

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        return [
            [Hit(c, 1) for c in chunks for s in e.evidence if c.start < s.end and s.start < c.end]
            for e in examples
        ]


@dataclass(frozen=True)
class Peeks(Oracle):
    """Uses the evidence without declaring it."""

    sees_gold = False


def test_only_oracles_see_the_gold() -> None:
    """Evidence reaches retrievers that declare `sees_gold`, also inside others, and no others."""
    chunks = chunked(STORY)
    example = replace(examples_of(["x"], chunks)[0], evidence=(Span(30, 31),), references=("mill",))
    for oracle in (Oracle(), Fusion((Oracle(),)), Neighbours(Fusion((Oracle(),)), 0, 0)):  # type: ignore[arg-type]  # take examples
        [[hit]] = retrieve(oracle, [example], chunks)
        assert hit.chunk == chunks[1]
    for blind in (Peeks(), Fusion((Peeks(),)), Neighbours(Peeks())):  # type: ignore[arg-type]  # takes examples
        assert retrieve(blind, [example], chunks) == [[]]


class Returns:
    """Returns a fixed value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def retrieve(self, chunks: Sequence[Chunk], questions: Sequence[str]) -> Any:
        return self.value


CHUNK = chunked(STORY)[0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "Returns.retrieve returned None; it must return one list of Hit per question"),
        ([[]], "Returns.retrieve returned 1 list for 2 questions; it must return one list"),
        ([[], CHUNK], "returned a Chunk as hits; it must return one list of Hit"),
        ([[], [CHUNK]], "returned a Chunk as a hit; it must be a Hit"),
        ([[], [(CHUNK, 1.0)]], "returned a tuple as a hit; it must be a Hit"),
        ([[], [Hit("text", 1.0)]], "returned a Hit as a hit; it must be a Hit"),  # type: ignore[arg-type]  # that is the fault
        ([[], [Hit(CHUNK, math.nan)]], "gave a hit the score nan; it must be a finite number"),
        ([[], [Hit(CHUNK, "1")]], "gave a hit the score '1'; it must be a finite number"),  # type: ignore[arg-type]  # that is the fault
        ([[], [Hit(chunked("x", name="e")[0], 1)]], "a chunk of document 'e' .* document 'd'"),
    ],
)
def test_a_value_that_is_not_a_list_of_hits_is_refused(value: Any, message: str) -> None:
    examples = [Example(str(i), CHUNK.document) for i in range(2)]
    with pytest.raises(StageError, match=message):
        retrieve(Returns(value), examples, [CHUNK])


def test_scores_become_floats() -> None:
    scores: tuple[Any, ...] = (1, np.float32(0.5), np.float64(0.25), np.int64(-2))
    [hits] = retrieve(
        Returns(([Hit(CHUNK, s) for s in scores],)), [Example("0", CHUNK.document)], [CHUNK]
    )
    assert [(type(hit.score), hit.score) for hit in hits] == [
        (float, score) for score in (1.0, 0.5, 0.25, -2.0)
    ]


PASSAGES = (CHUNK.document.chunk(10, 20), "literal text", CHUNK.document.chunk(20, 30))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (Output("x", span=Span(9, 12)), r"gave the span \(9, 12\), which is not within one of the"),
        (Output("x", span=Span(15, 25)), "is not within one of the chunks"),
        (Output("x", span=Span(28, 99)), "is not within one of the chunks"),
        (Output("x", span=(12, 15)), "gave the span a tuple; it must be a Span or None"),  # type: ignore[arg-type]
        (Output("x", read=(Span(0, 10**6),)), "is not within the passages"),
        (Output("x", read=((0, 2),)), "it must be a tuple of Span"),  # type: ignore[arg-type]
        (Output("x", cut=-5), "gave the cut -5; it must be a count"),
        (Output("x", score="high"), "gave the score 'high'"),  # type: ignore[arg-type]
        (Output("x", scores=(1.0,)), "gave 1 scores for 0 choices"),
        (Output("x", scores=(math.nan,)), "gave the scores nan; it must be a number"),
        (Output("x", dollars=math.nan), "gave the dollars nan; it must be a number"),
        (Output(None), r"it must return Output\(text\)"),  # type: ignore[arg-type]
        ("x", r"it must return Output\(text\)"),
    ],
)
def test_an_invalid_output_is_refused_with_the_requirement(output: Any, message: str) -> None:
    """The message names the value; an answer must be in one chunk, not across two."""
    with pytest.raises(StageError, match=message):
        read(Returning(output), [Read(PASSAGES)])


def test_the_span_of_an_answer_is_kept() -> None:
    span = Span(np.int64(12), np.int64(20))  # type: ignore[arg-type]  # as tensors have
    [output] = read(Returning(Output("x", span=span, dollars=np.float32(0.5))), [Read(PASSAGES)])  # type: ignore[arg-type]  # as tensors have
    assert (output.span, type(output.span and output.span.start)) == (Span(12, 20), int)
    for reply in (output, replace(output, span=Span(10, 10))):
        assert reply_of(output_row(Read(PASSAGES), reply), Read(PASSAGES)) == reply


def test_unpaired_surrogates_are_replaced() -> None:
    [output] = read(Returning(Output("a\ud800b")), [Read(())])
    assert output.text == "a\ufffdb"


def test_a_stage_cannot_stop_the_run() -> None:
    with pytest.raises(ExampleError, match="interrupted"), stage_errors("enricher"):
        raise Stopped("interrupted")
