"""Tests of answering the questions within a question first."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from one_example import drive

from leporello.api import AskSettings, Session
from leporello.combiners import NestedQuestions
from leporello.core.records import Document, Example, Hit, Output, Read

DOCUMENT = Document("d", "Ann Lee wrote Emma. Ann Lee was born in Hull, and her son is Bo.")
EXAMPLE = Example("e", DOCUMENT, question="Where was the author of Emma born?")
AUTHOR, BORN = "Who is the author of Emma?", "Where was Ann Lee born?"


def _answers(outputs: Mapping[str, Output], example: Example = EXAMPLE) -> tuple[object, list[str]]:
    """Returns the combiner's value and the questions that it asked."""

    def answer(read: Read) -> Output:
        return outputs[read.question]

    hits = [Hit(DOCUMENT.chunk(0, 19), 1.0)]
    value, rounds = drive(NestedQuestions(), answer, example, hits)
    return value, [read.question for [read] in rounds]


def test_the_last_question_contains_the_answer_to_the_inner_one() -> None:
    outputs = {
        AUTHOR: Output("Ann Lee", 3.0, probability=0.5),
        BORN: Output("Hull", 2.0, probability=0.75),
    }
    expected = {"answer": "Hull", "confidence": 0.625}
    assert _answers(outputs) == (expected, [AUTHOR, BORN])


def test_several_inner_questions_are_answered_one_after_the_other() -> None:
    example = replace(EXAMPLE, question="Who is the wife of the son of the author of Emma?")
    steps = [AUTHOR, "Who is the son of Ann Lee?", "Who is the wife of Bo?"]
    names = [Output(name, 1.0) for name in ("Ann Lee", "Bo", "Eve")]
    value, questions = _answers(dict(zip(steps, names, strict=True)), example)
    assert (value, questions) == ({"answer": "Eve", "confidence": None}, steps)


@pytest.mark.parametrize("unsure", [AUTHOR, BORN])
@pytest.mark.parametrize("output", [Output("Ann Lee", -1.0), Output("Unanswerable", 5.0)])
def test_after_an_unsure_answer_the_question_is_read_as_a_whole(
    unsure: str, output: Output
) -> None:
    outputs = {
        AUTHOR: Output("Ann Lee", 3.0),
        BORN: Output("Hull", 2.0),
        EXAMPLE.question: Output("York", -2.0),
        unsure: output,
    }
    value, questions = _answers(outputs)
    assert (value, questions[-1]) == ("York", EXAMPLE.question)


@pytest.mark.parametrize(
    "change", [{"question": "Who is Bo?"}, {"choices": ("Hull", "York")}, {"schema": "{}"}]
)
def test_other_examples_are_read_once(change: Mapping[str, object]) -> None:
    example = replace(EXAMPLE, **change)  # type: ignore[arg-type]
    assert _answers({example.question: Output("Hull", 1.0)}, example) == (
        "Hull",
        [example.question],
    )


def test_the_default_pipeline_finds_where_the_designer_was_born(tmp_path: Path) -> None:
    path = tmp_path / "island.txt"
    reports = (f"Report {n} is about ships, fog and the pier in winter." for n in range(60))
    text = [
        "The lighthouse on Skerry Island was designed by Anna Holm.",
        *reports,
        "Anna Holm was born in Bergen on 4 May 1850.",
        "Carl Berg was born in Oslo on 1 June 1840.",
    ]
    path.write_text("\n\n".join(text), encoding="utf-8")
    question = "Where was the designer of Skerry Island born?"
    answer = Session.open([path], AskSettings()).ask(question)
    [span] = answer.spans
    assert (answer.text, answer.document.text[span.start : span.end]) == ("Bergen", "Bergen")
