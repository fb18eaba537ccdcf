"""Combiners that decide: how far a cascade goes, what is best, and what a mistake tells."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello
from one_example import drive, run_example

from leporello.chunkers import Paragraphs
from leporello.combiners import BestOf, ByRole, Cascade, MapReduce, Route, Stuff, Verify, When
from leporello.config import Pipeline, load_config
from leporello.core.errors import ConfigError
from leporello.core.records import Document, Example, Output, Read
from leporello.engine.active_example import ActiveExample
from leporello.engine.results.serialization import prediction_of
from leporello.readers import Embedded
from leporello.retrievers import BM25
from leporello.text.english.questions import kind_of

TALE = Document(
    "t",
    "The miller had three sons. The eldest took the mill.\n\n"
    "The youngest had nothing but the cat. The boots of the cat were red.\n\n"
    "Anna painted the boots. She lived in Bruges.\n",
)


@dataclass(frozen=True)
class Says:
    """Answers every read alike."""

    text: str
    probability: float | None = None
    score: float | None = None
    reads: list[Read] = field(default_factory=list)

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        self.reads.extend(inputs)
        return [Output(self.text, self.score, probability=self.probability) for _ in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [1 for _ in texts]


SURE, UNSURE = Says("red", 0.9), Says("blue", 0.2)
TWO = (ByRole(Stuff(), "cheap", hits=1), Stuff())


def finished(combiner: Any, answer: Says, /, **roles: Says) -> ActiveExample:
    """Runs a question to its end."""
    stages = Pipeline(Paragraphs(size=12), BM25(k=3), answer, combiner, roles=roles)
    example = Example("e", TALE, question="What colour were the boots of the cat?")
    return run_example(stages, example)[0]


def told(combiner: Any, answer: Says, /, **roles: Says) -> Any:
    """Returns what a combiner returned."""
    return finished(combiner, answer, **roles).value


def test_a_role_is_asked_with_its_own_number_of_hits() -> None:
    """What names a role of its own keeps it."""
    cheap = Says("red")
    assert told(ByRole(Stuff(), "cheap", hits=1), SURE, cheap=cheap) == "red"
    assert [len(read.passages) for read in cheap.reads] == [1]
    inner = ByRole(MapReduce(map_role="answer"), "cheap")
    assert {read.role for read in _reads(finished(inner, SURE, cheap=cheap))} == {"answer", "cheap"}


def _reads(active: ActiveExample) -> list[Read]:
    return [call.read for call in active.calls]


@pytest.mark.parametrize(
    ("cheap", "step"),
    [(SURE, 1), (UNSURE, 2), (Says("unanswerable", 0.9), 2), (Says("", 0.9), 2)],
)
def test_a_cascade_goes_on_from_what_is_unlikely_or_says_nothing(cheap: Says, step: int) -> None:
    """And only then does the dearer reader read."""
    active = finished(Cascade(TWO), Says("green", 0.7), cheap=cheap)
    value: Any = active.value
    assert (value["step"], len(active.calls)) == (step, step)
    assert value["way"] == [f"step {step} of 2"]
    calls = ((call.read, call.reply) for call in active.calls)
    prediction = prediction_of(active.example, active.hits, calls, value)
    assert (prediction.prediction, prediction.confidence) == (
        ("red", 0.9) if step == 1 else ("green", 0.7)
    )


def test_an_answer_of_unknown_probability_is_not_taken_and_noted() -> None:
    """Nobody is silently confident; the last step's answer has no confidence then."""
    active = finished(Cascade(TWO), Says("green"), cheap=Says("red", score=5.0))
    assert active.value == {
        "answer": "green", "confidence": None, "step": 2, "way": ["step 2 of 2"],
    }  # fmt: skip
    assert active.notes == ["Cascade went on after step 1: no probability of its answer is known"]


def test_steps_that_must_agree_go_on_where_they_do_not() -> None:
    """Each is compared with the one before."""
    three = (ByRole(Stuff(), "cheap"), ByRole(Stuff(), "middle"), Stuff())
    cascade = Cascade(three, each=(1.0, 0.0), agree=True)
    same = told(cascade, SURE, cheap=Says("the red", 0.3), middle=Says("Red.", 0.3))
    assert (same["step"], same["answer"]) == (2, "Red.")
    assert told(cascade, SURE, cheap=Says("blue", 0.3), middle=Says("green", 0.9))["step"] == 3


def test_the_best_is_the_likeliest_the_best_scored_or_the_judges() -> None:
    """What says nothing is not kept, whoever is sure of it."""
    likely = told(BestOf(TWO), UNSURE, cheap=SURE)
    assert (likely["answer"], likely["confidence"]) == ("red", 0.9)
    assert [one["answer"] for one in likely["candidates"]] == ["red", "blue"]
    scored = BestOf(TWO, by="score")
    assert told(scored, Says("b", score=2.0), cheap=Says("a", score=1.0))["answer"] == "b"
    assert told(BestOf(TWO), UNSURE, cheap=Says("none", 0.99))["answer"] == "blue"
    judged = finished(BestOf(TWO, "judge", "judge"), UNSURE, cheap=SURE, judge=Says("Blue"))
    assert judged.value["answer"] == "blue"  # type: ignore[call-overload, index]
    assert _reads(judged)[-1].choices == ("red", "blue")


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Who wrote it?", "who"),
        ("In what year did he die?", "when"),
        ("Where is Bruges?", "where"),
        ("How many boots are there?", "how_many"),
        ("Is the cat red?", "yes_no"),
        ("Which is older, Bruges or Ghent?", "either"),
        ("The cat eats the ogre.", "statement"),
        ("Why did she paint?", "reason"),
        ("What did she paint?", "other"),
        (" ", "none"),
    ],
)
def test_questions_are_of_kinds(question: str, kind: str) -> None:
    """By their words, in English."""
    assert kind_of(question) == kind


def _route(example: Example, *routes: When) -> str:
    value, _ = drive(Route((*routes,), Stuff()), example, (), lambda _: Output("x"))
    return str(value["way"][0])


def test_the_first_route_that_matches_is_taken() -> None:
    """By kind or words of the question, group, choices and length; all that is given must hold."""
    who = When(Stuff(), kind=("who", "when"))
    words = When(Stuff(), question=r"\bcat\b", longest=50)
    group = When(Stuff(), group=("dev",), choices=False)
    asked = Example("e", TALE, "Who had the cat?", group="dev")
    assert _route(asked, who, words, group) == "kind who|when"
    assert _route(asked, words, group) == "group dev, choices False"
    chosen = Example("e", Document("s", "Short."), "Which CAT?", choices=("a", "b"), group="dev")
    assert _route(chosen, who, group, words) == "question \\bcat\\b, longest 50"
    assert _route(chosen, who, group) == "otherwise"


def test_what_was_read_must_bear_an_answer_out() -> None:
    """A short answer is checked as a statement of the question; a summary by its sentences."""
    question = Example("e", TALE, question="Who painted the boots?")
    checks = Verify(Stuff(), "check", "drop", nothing="?")
    good: Any = _verified(checks, question, "Anna")
    assert (good["answer"], good["way"]) == ("Anna", ["supported"])
    assert good["claims"][0]["probability"] > 0.5
    bad: Any = _verified(checks, question, "The miller")
    assert (bad["answer"], bad["way"], bad["confidence"]) == ("?", ["unsupported"], 0.9)
    story = Example("e", TALE, instruction="Summarise.")
    text = "The miller had three sons. Anna bought a castle in Rome."
    told: Any = _verified(Verify(Stuff(), "check", mark=" (?)"), story, text)
    assert told["answer"] == "The miller had three sons. Anna bought a castle in Rome. (?)"
    assert told["way"] == ["supported in part"]


def _verified(combiner: Verify, example: Example, answer: str) -> object:
    stages = Pipeline(
        Paragraphs(size=12), BM25(k=3), Says(answer, 0.9), combiner, roles={"check": Embedded()}
    )
    return run_example(stages, example)[0].value


def test_pairs_of_premise_and_hypothesis_are_one_a_passage() -> None:
    """For readers that compare two texts; one passage that bears it out is enough."""
    checks = Verify(Stuff(), "check", labels=("same",), pairs=True)
    active = finished(checks, Says("red"), check=Says("same", 0.8))
    pairs = [read.pair for read in _reads(active) if read.pair]
    assert len(pairs) == len(active.hits)
    assert {said for _, said in pairs} == {"The boots of the cat were red."}
    assert active.value["way"] == ["supported"]  # type: ignore[call-overload, index]


MISTAKES: Mapping[str, str] = {
    "{class: Cascade, steps: [Stuff]}": "a cascade needs two steps at least, got 1",
    "{class: Cascade, steps: [Stuff, Stuff], below: 1.5}": "less than or equal to 1, got 1.5",
    "{class: Cascade, steps: [Stuff, Stuff], each: [0.1, 0.2]}": "each step but the last: 1, got 2",
    "{class: ByRole, combiner: Stuff, role: cheep}": "no reader has the role 'cheep'; did you mean",
    "{class: Route, routes: [], otherwise: Stuff}": "routes is empty",
    "{class: Route, routes: [Stuff], otherwise: Stuff}": "route 1 is a Stuff, and must be",
    "{class: Route, routes: [{class: When, combiner: Stuff}], otherwise: Stuff}": "no condition",
    "{class: When, combiner: Stuff, shortest: 9, longest: 5}": "this route can never match",
    "{class: When, combiner: Stuff, question: '(a'}": "question is no regular expression",
    "{class: When, combiner: Stuff, kind: [whom]}": "Input should be 'none'".lower(),
    "&a {class: Route, routes: [{class: When, kind: [who], combiner: *a}], otherwise: Stuff}": (
        "an alias may not point to a value that contains it"
    ),
    "{class: Verify, combiner: Stuff, threshold: -1}": "greater than or equal to 0, got -1",
    "{class: Verify, combiner: Stuff, labels: [yes]}": "labels needs two at least",
    "{class: BestOf, combiners: []}": "the best of two combiners at least, got 0",
}


@pytest.mark.parametrize("combiner", MISTAKES)
def test_mistakes_are_told_with_their_line(tmp_path: Path, combiner: str) -> None:
    """Before any work."""
    file = tmp_path / "mine.yaml"
    readers = "{answer: Lead, cheap: BestSentence}"
    file.write_text(f"pipelines:\n  mine:\n    readers: {readers}\n    combiner: {combiner}\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml:4: ") as raised:
        load_config([file])
    assert MISTAKES[combiner] in str(raised.value)


def test_a_run_tells_how_many_went_how_far_and_what_it_saved(tmp_path: Path) -> None:
    """In its summary and in the report; the counts are those of the predictions."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        "pipelines:\n  mine:\n    extends: default\n    combiner:\n      class: Cascade\n"
        "      below: 0.3\n      steps: [{class: ByRole, combiner: Stuff, role: answer, hits: 1},"
        " Stuff]\n"
    )
    rows = [
        {"id": str(n), "document": TALE.text, "question": q, "references": ["x"]}
        for n, q in enumerate(["What colour were the boots?", "Who wrote the book?"])
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    task = "{class: JsonLines, path: rows.jsonl}"
    file.write_text(f"{file.read_text()}tasks: {{tale: {task}}}\n")
    out = tmp_path / "out"
    shown = leporello("run", "mine", "--task", "tale", "--config", str(file), "--out", str(out))
    [written] = out.glob("**/predictions.jsonl")
    steps = [json.loads(line)["raw"]["step"] for line in written.read_text().splitlines()]
    assert sorted(steps) == [1, 2]
    assert "Ways of tale" in shown.stdout
    saved = "saved compared with the most expensive way: 25% of the reads, "
    assert saved in shown.stdout
    page = tmp_path / "report.html"
    leporello("report", str(out), "--out", str(page))
    assert "step 1 of 2" in page.read_text()
    assert "seconds of reading, as last measured: answer" in page.read_text()
