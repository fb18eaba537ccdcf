"""Tests of combiners that decide between readers, combiners or answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines, write_files
from one_example import drive, run_example
from toy_stages import Returning

from leporello.chunkers import Paragraphs
from leporello.combiners import BestOf, ByRole, Cascade, MapReduce, Route, Stuff, Verify, When
from leporello.config import Pipeline, load_config
from leporello.core.errors import ConfigError
from leporello.core.records import Document, Example, Output, Read
from leporello.engine.active_example import ActiveExample
from leporello.engine.results.finished import prediction_of
from leporello.readers import Embedded
from leporello.retrievers import BM25
from leporello.text.english.questions import kind_of

TALE = Document(
    "t",
    "The miller had three sons. The eldest took the mill.\n\n"
    "The youngest had nothing but the cat. The boots of the cat were red.\n\n"
    "Anna painted the boots. She lived in Bruges.\n",
)


def constant(text: str, probability: float | None = None, score: float | None = None) -> Returning:
    return Returning(Output(text, score, probability=probability))


CHECK = Embedded()
SURE, UNSURE = constant("red", 0.9), constant("blue", 0.2)
TWO = (ByRole(Stuff(), "cheap", hits=1), Stuff())


ASKED = Example("e", TALE, question="What colour were the boots of the cat?")


def finished(
    combiner: Any, answer: Returning, /, example: Example = ASKED, **roles: Any
) -> ActiveExample:
    stages = Pipeline(Paragraphs(size=12), BM25(k=3), answer, combiner, roles=roles)
    return run_example(stages, example)[0]


def value_of(combiner: Any, answer: Returning, /, **roles: Any) -> Any:
    return finished(combiner, answer, **roles).value


def test_by_role_sets_the_role_and_the_number_of_hits() -> None:
    cheap = constant("green")
    active = finished(ByRole(Stuff(), "cheap", hits=1), SURE, cheap=cheap)
    assert active.value == "green"
    assert [len(read.passages) for read in _reads(active)] == [1]
    inner = ByRole(MapReduce(map_role="answer"), "cheap")
    assert {read.role for read in _reads(finished(inner, SURE, cheap=cheap))} == {"answer", "cheap"}


def _reads(active: ActiveExample) -> list[Read]:
    return [call.read for call in active.calls]


@pytest.mark.parametrize(
    ("cheap", "step"),
    [(SURE, 1), (UNSURE, 2), (constant("unanswerable", 0.9), 2), (constant("", 0.9), 2)],
)
def test_a_cascade_continues_after_improbable_or_empty_answers(cheap: Returning, step: int) -> None:
    active = finished(Cascade(TWO), constant("green", 0.7), cheap=cheap)
    value: Any = active.value
    assert (value["step"], len(active.calls)) == (step, step)
    assert value["way"] == [f"step {step} of 2"]
    calls = ((call.read, call.reply) for call in active.calls)
    prediction = prediction_of(active.example, active.hits, calls, value)
    expected = ("red", 0.9) if step == 1 else ("green", 0.7)
    assert (prediction.prediction, prediction.confidence) == expected


def test_a_cascade_continues_after_an_answer_without_probability_with_a_note() -> None:
    active = finished(Cascade(TWO), constant("green"), cheap=constant("red", score=5.0))
    way = {"step": 2, "way": ["step 2 of 2"]}
    assert active.value == {"answer": "green", "confidence": None, **way}
    assert active.notes == ["Cascade continued after step 1: its answer has no probability"]


def test_a_cascade_with_agree_continues_after_different_answers() -> None:
    three = (ByRole(Stuff(), "cheap"), ByRole(Stuff(), "middle"), Stuff())
    cascade = Cascade(three, below=0.2, agree=True)
    same = value_of(cascade, SURE, cheap=constant("the red", 0.1), middle=constant("Red.", 0.3))
    assert (same["step"], same["answer"]) == (2, "Red.")
    different = value_of(cascade, SURE, cheap=constant("blue", 0.1), middle=constant("green", 0.9))
    assert different["step"] == 3


def test_best_of_chooses_by_probability() -> None:
    probable = value_of(BestOf(TWO), UNSURE, cheap=SURE)
    assert (probable["answer"], probable["confidence"]) == ("red", 0.9)
    assert [candidate["answer"] for candidate in probable["candidates"]] == ["red", "blue"]
    assert value_of(BestOf(TWO), UNSURE, cheap=constant("none", 0.99))["answer"] == "blue"


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
def test_the_words_of_a_question_determine_its_kind(question: str, kind: str) -> None:
    assert kind_of(question) == kind


def _route(example: Example, *routes: When) -> str:
    value, _ = drive(Route((*routes,), Stuff()), lambda _: Output("x"), example, ())
    return str(value["way"][0])


def test_the_first_matching_route_is_used() -> None:
    by_kind = When(Stuff(), kind=("who", "when"))
    by_length = When(Stuff(), longest=50)
    by_group = When(Stuff(), group=("dev",), choices=False)
    plain = Example("e", TALE, "Who had the cat?", group="dev")
    assert _route(plain, by_kind, by_length, by_group) == "kind who|when"
    assert _route(plain, by_length, by_group) == "group dev, choices False"
    short = Example("e", Document("s", "Short."), "Which CAT?", choices=("a", "b"), group="dev")
    assert _route(short, by_kind, by_group, by_length) == "longest 50"
    assert _route(short, by_kind, by_group) == "otherwise"


def test_verify_drops_or_marks_claims_that_the_passages_do_not_support() -> None:
    question = Example("e", TALE, question="Who painted the boots?")
    checks = Verify(Stuff(), "check", "drop")
    good: Any = _verified(checks, question, "Anna")
    assert (good["answer"], good["way"]) == ("Anna", ["supported"])
    assert good["claims"][0]["probability"] > 0.5
    bad: Any = _verified(checks, question, "The miller")
    assert (bad["answer"], bad["way"], bad["confidence"]) == ("", ["unsupported"], 0.9)
    story = Example("e", TALE, instruction="Summarise.")
    text = "The miller had three sons. Anna bought a castle in Rome."
    marked: Any = _verified(Verify(Stuff(), "check"), story, text)
    assert (
        marked["answer"] == "The miller had three sons. Anna bought a castle in Rome. [unsupported]"
    )
    assert marked["way"] == ["supported in part"]


def _verified(combiner: Verify, example: Example, answer: str) -> object:
    return finished(combiner, constant(answer, 0.9), example, check=CHECK).value


def test_verify_with_pairs_reads_one_pair_per_passage() -> None:
    """Readers that compare two texts need pairs; one supporting passage is enough."""
    checks = Verify(Stuff(), "check", pairs=True)
    active = finished(checks, constant("red"), check=constant("entailment", 0.8))
    pairs = [read.pair for read in _reads(active) if read.pair]
    assert len(pairs) == len(active.hits)
    assert {claim for _, claim in pairs} == {"What colour were the boots of the cat? red"}
    assert active.value["way"] == ["supported"]  # type: ignore[call-overload, index]


MISTAKES: Mapping[str, str] = {
    "{class: Cascade, steps: [Stuff]}": "a cascade needs at least two steps, got 1",
    "{class: Cascade, steps: [Stuff, Stuff], below: 1.5}": "less than or equal to 1, got 1.5",
    "{class: ByRole, combiner: Stuff, role: cheep}": "no reader has the role 'cheep'; did you mean",
    "{class: Route, routes: [], otherwise: Stuff}": "routes is empty",
    "{class: Route, routes: [Stuff], otherwise: Stuff}": "route 1 is a Stuff, not a When: write",
    "{class: Route, routes: [{class: When, combiner: Stuff}], otherwise: Stuff}": "no condition",
    "{class: When, combiner: Stuff, kind: [whom]}": "must be 'none'",
    "&a {class: Route, routes: [{class: When, kind: [who], combiner: *a}], otherwise: Stuff}": (
        "an alias may not point to a value that contains it"
    ),
    "{class: Verify, combiner: Stuff, threshold: -1}": "greater than or equal to 0, got -1",
    "{class: BestOf, combiners: []}": "combiners needs at least two, got 0",
}


@pytest.mark.parametrize("combiner", MISTAKES)
def test_faults_in_a_config_are_reported_with_their_line(tmp_path: Path, combiner: str) -> None:
    file = tmp_path / "mine.yaml"
    readers = "{answer: Lead, cheap: BestSentence}"
    file.write_text(f"pipelines:\n  mine:\n    readers: {readers}\n    combiner: {combiner}\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml:4: ") as raised:
        load_config([file])
    assert MISTAKES[combiner] in str(raised.value)


CASCADE = """
pipelines:
  mine:
    extends: default
    tasks: [tale]
    combiner:
      class: Cascade
      below: 0.3
      steps: [{class: ByRole, combiner: Stuff, role: answer, hits: 1}, Stuff]
tasks:
  tale: {class: JsonLines, path: rows.jsonl}
"""


def test_a_run_reports_how_often_each_step_answered_and_the_savings(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "document": TALE.text, "question": q, "references": ["x"]}
        for n, q in enumerate(["What colour were the boots?", "Who wrote the book?"])
    ]
    write_files(tmp_path, {"mine.yaml": CASCADE, "rows.jsonl": rows})
    out = tmp_path / "out"
    process = leporello("run", "mine", "--config", tmp_path / "mine.yaml", "--out", out, *HERE)
    [predictions] = out.glob("**/predictions.jsonl")
    assert sorted(row["raw"]["step"] for row in read_lines(predictions)) == [1, 2]
    assert "Ways of tale" in process.stdout
    saved = "saved compared with the most expensive way: 25% of the reads, "
    assert saved in process.stdout
    leporello("report", out, "--out", tmp_path / "report.html")
    assert "step 1 of 2" in (tmp_path / "report.html").read_text()
