"""Tests of combiners that read in rounds, each of which depends on the one before."""

import dataclasses
from collections.abc import Callable
from functools import partial

import pytest
from one_example import drive, texts_of

from leporello.combiners import (
    ChainOfAgents,
    ChainOfNotes,
    PlanThenRead,
    SelfConsistency,
    StructuredMapReduce,
    Stuff,
)
from leporello.combiners.chains.plan_then_read import plan_by_rule
from leporello.combiners.chains.structured_map_reduce import finding
from leporello.core.records import Document, Example, Hit, Output, Read, Span

DOCUMENT = Document("d", "Anna is red. Bert is blue. Carl is red.", title="Colours")
HITS = [
    Hit(DOCUMENT.chunk(13, 26), 3.0),
    Hit(DOCUMENT.chunk(27, 39), 2.0),
    Hit(DOCUMENT.chunk(0, 12), 1.0),
]
EXAMPLE = Example("e", DOCUMENT, question="which?", instruction="Answer.")
_drive = partial(drive, example=EXAMPLE, hits=HITS)


def _join(read: Read) -> Output:
    return Output("+".join(texts_of(read)))


def test_agents_of_a_chain_read_the_summary_of_the_agent_before() -> None:
    value, rounds = _drive(ChainOfAgents(hits=1, worker="W"), _join)
    first, second, third = (hit.chunk.text for hit in (HITS[2], HITS[0], HITS[1]))
    texts = [texts_of(read) for [read] in rounds]
    assert texts == [[first], [first, second], [f"{first}+{second}", third], [value]]
    assert {read.question for [read] in rounds} == {"which?"}
    assert [read.instruction for [read] in rounds] == ["W Answer."] * 3 + ["Answer."]


def test_workers_read_as_many_hits_as_fit_beside_the_summary() -> None:
    _, rounds = _drive(ChainOfAgents(), _join, fits=2)
    assert [len(read.passages) for [read] in rounds] == [2, 2, 1]
    _, rounds = _drive(ChainOfAgents(), _join, fits=0)
    assert len(rounds) == len(HITS) + 1


def test_an_empty_output_of_a_worker_leaves_the_summary_unchanged() -> None:
    texts = iter(["red", " ", "none", "done"])
    value, rounds = _drive(ChainOfAgents(hits=1), lambda _: Output(next(texts)))
    assert (value, texts_of(rounds[-1][0])) == ("done", ["red"])
    _, rounds = _drive(ChainOfAgents(hits=1), lambda _: Output(""))
    assert rounds[-1][0].passages == ()


def test_workers_that_copy_pass_on_complete_sentences() -> None:
    """A name without its sentence would not help the next worker; sentences are not repeated."""

    def copy(read: Read) -> Output:
        is_hit = read.passages[-1] in (HITS[0].chunk, HITS[1].chunk)
        return Output("blue", span=Span(21, 25) if is_hit else None)

    _, rounds = _drive(ChainOfAgents(hits=1), copy, hits=HITS[:2])
    assert texts_of(rounds[-1][0]) == ["Bert is blue."]


def test_each_note_precedes_its_passage() -> None:
    texts = {"Bert": "Irrelevant.", "Carl": "Carl is.", "Anna": "Anna is."}
    note: Callable[[Read], Output] = lambda read: Output(texts[texts_of(read)[-1].split()[0]])  # noqa: E731 -- typed
    _, [notes, [read]] = _drive(ChainOfNotes(note="N"), note)
    assert [note_read.instruction for note_read in notes] == ["N"] * 3
    assert texts_of(read) == ["Carl is.", "Carl is red.", "Anna is.", "Anna is red."]
    _, [_, [read]] = _drive(ChainOfNotes(), note, fits=3)
    assert texts_of(read) == ["Carl is.", "Carl is red."]  # the worst pair does not fit


def test_self_consistency_returns_the_most_frequent_answer() -> None:
    texts = iter(["red", "The blue.", "Blue", "red", "blue"])
    assert _drive(SelfConsistency(Stuff()), lambda _: Output(next(texts)))[0] == "The blue."
    texts = iter(["A", "B"])
    assert _drive(SelfConsistency(Stuff(), runs=2), lambda _: Output(next(texts)))[0] == "A"


def test_votes_are_weighted_by_scores() -> None:
    outputs = iter([("red", -9.0), ("red", -9.0), ("blue", 3.0)])
    value, _ = _drive(SelfConsistency(Stuff(), runs=3), lambda _: Output(*next(outputs)))
    assert value == "blue"


WRITTEN = """\
**Extracted Information:** Bert is blue.
1. Rationale: it
 says so
Answer: blue
Confidence: {}"""


@pytest.mark.parametrize(
    ("number", "confidence"),
    [("4", 0.8), ("4/5", 0.8), ("80 %", 0.8), ("High.", 0.5), ("99", 1.0), ("?", 0.5), ("", 0.5)],
)
def test_fields_are_parsed_in_several_formats(number: str, confidence: float) -> None:
    parsed = finding(Output(WRITTEN.format(number)), DOCUMENT)
    assert (parsed.information, parsed.answer) == ("Bert is blue.", "blue")
    lines = (
        "Extracted information: Bert is blue.\nRationale: it\n says so\nAnswer: blue\nConfidence: "
    )
    assert parsed.text.startswith(lines)
    assert parsed.confidence == pytest.approx(confidence)


def test_a_structured_reduction_reads_all_fields() -> None:
    def write(read: Read) -> Output:
        if read.instruction.startswith("R"):
            return Output("Answer: red\nConfidence: 5")
        texts = {"Bert": "Answer: none", "Carl": "Answer: red", "Anna": WRITTEN.format(2)}
        return Output(texts[texts_of(read)[0].split()[0]])

    value, [_, [read]] = _drive(StructuredMapReduce(reduce="R"), write)
    assert value == "red"
    assert texts_of(read) == [
        "Extracted information: Bert is blue.\nRationale: it\n says so\nAnswer: blue\n"
        "Confidence: 2.0",
        "Answer: red\nConfidence: 2.5",
    ]


def test_findings_are_collapsed_in_groups_that_fit() -> None:
    for fits in (2, 0):
        _, rounds = _drive(StructuredMapReduce(), lambda _: Output("Answer: x"), fits=fits)
        assert [len(reads) for reads in rounds] == [3, 2, 1]


def test_without_fields_confidences_of_equal_answers_are_added() -> None:
    outputs = {"Bert": ("blue", 0.5), "Carl": ("Red.", 0.0), "Anna": ("red", 0.0)}
    reader: Callable[[Read], Output] = lambda read: Output(*outputs[texts_of(read)[0].split()[0]])  # noqa: E731 -- typed
    value, rounds = _drive(StructuredMapReduce(), reader)
    assert (value, len(rounds)) == ("red", 1)
    assert _drive(StructuredMapReduce(), lambda _: Output("Unanswerable"))[0] == "Unanswerable"


@pytest.mark.parametrize(
    ("question", "plan"),
    [
        ("Who is the spouse of the actress who plays Scarlett?",
         "Which actress plays Scarlett? | Who is the spouse of #1?"),
        ("Who owns the record label of the composer of Aida?",
         "Who is the composer of Aida? | What is the record label of #1? | Who owns #2?"),
        ("Which came out first, Jaws or Alien?",
         "Which came out first Jaws? | Which came out first Alien?"),
        ("Who wrote it? When?", "Who wrote it? | When?"),
        *((question, "") for question in (
            "I rent a flat. Who may end that?", "What is the name of the cat?", "", "谁？"
        )),
    ],
)  # fmt: skip
def test_a_plan_by_rule_asks_for_the_innermost_clause_first(question: str, plan: str) -> None:
    assert " | ".join(plan_by_rule(question, 4)) == plan
    assert len(plan_by_rule(question, 1)) <= 1


@pytest.mark.parametrize("writes", [True, False])
def test_a_rule_makes_the_plan_if_the_reader_writes_none(writes: bool) -> None:
    example = dataclasses.replace(EXAMPLE, question="Who is beside the one that is blue?")
    _, rounds = _drive(PlanThenRead(), lambda _: Output("Bert"), example=example, writes=writes)
    questions = ["Which one is blue?", "Who is beside Bert?", example.question]
    assert [read.question for [read] in rounds] == [example.question] * writes + questions


def test_steps_of_a_plan_contain_earlier_results() -> None:
    plan = "1. Who is red?\n2. Who is beside #1?\n3. Who is green?"
    texts = iter([plan, "Anna", "Bert", "none", "done"])
    value, rounds = _drive(PlanThenRead(answer="A"), lambda _: Output(next(texts)))
    assert value == "done"
    assert [(read.question, texts_of(read)) for [read] in rounds[1:4]] == [
        ("Who is red?", []),
        ("Who is beside Anna?", ["Who is red? Anna"]),
        ("Who is green?", ["Who is red? Anna", "Who is beside Anna? Bert"]),
    ]
    last = rounds[4][0]
    assert (last.question, last.instruction) == ("which?", "A")
    assert texts_of(last)[:3] == ["Who is red? Anna", "Who is beside Anna? Bert", "Bert is blue."]
