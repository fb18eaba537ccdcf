"""The edges of the metrics; `tests/metrics/test_golden.py` has the official numbers."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leporello import Coverage, Document, Example, Prediction, Span
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics import METRICS, GoldError, Metric, Parses, check_metrics
from leporello.metrics.coco.java import LineProcess
from leporello.text.typed.schema import schema_of

# A reference that the metric can be scored against, where any text will not do.
GOLD = {
    "concordance_index": "2, 1, 3",
    "exponential_similarity": "60%",
    "longbench_v2": "The correct answer is (B)",
    "loogle_cloze": '{"<mask-0>": "Bob"}',
    "option_letter": "B",
    "pan21": "[1, 1, 2]",
}


def predicted(text: str = "", hits: tuple[tuple[int, int], ...] = ()) -> Prediction:
    """Returns a prediction; without arguments, what a failure is scored as."""
    scored = tuple((start, end, 1.0) for start, end in hits)
    read = tuple(Span(start, end) for start, end in hits)
    return Prediction("x", text, text, scored, read, Coverage(0, 0, 0, 0), "")


def asked(
    *references: str,
    text: str = "",
    evidence: tuple[Span, ...] = (),
    choices: tuple[str, ...] = (),
) -> Example:
    """Returns an example with this gold."""
    document = Document("d", text)
    return Example("x", document, references=references, evidence=evidence, choices=choices)


def made(name: str) -> Metric:
    """Returns a metric; skips the test where what it needs is not installed, and says what."""
    try:
        return metrics_of([name])[name]
    except UserError as error:
        pytest.skip(str(error))


def scored(name: str, text: str, *references: str, choices: tuple[str, ...] = ()) -> float:
    """Returns the score of one text."""
    metric, example = made(name), asked(*references, choices=choices)
    statistics = metric.statistics(predicted(text), example)
    assert statistics is not None
    return metric.score(statistics)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_names_and_signs_itself(name: str) -> None:
    """A metric's name is its key, and leads its signature."""
    metric = made(name)
    assert metric.name == name
    assert metric.signature.startswith(f"{name}|")
    assert "version:1" in metric.signature


@pytest.mark.parametrize("name", sorted(METRICS))
def test_what_has_no_gold_is_not_scored(name: str) -> None:
    """Without references or evidence an example has no statistics, and none make no score."""
    metric = made(name)
    assert metric.statistics(predicted("text"), asked()) is None
    assert metric.aggregate([]) == {}


# Scores pairs of examples, not examples: tests/tasks/test_shuffle_test.py.
IN_PAIRS = {"shuffle_accuracy"}


@pytest.mark.parametrize(
    "name", sorted(METRICS.keys() - IN_PAIRS - {"judge", "citations"})
)  # which asks a reader
def test_a_failure_scores_zero(name: str) -> None:
    """The empty prediction of a failed example is scored, as zero, in numbers that JSON holds."""
    metric = made(name)
    gold = GOLD.get(name, "an answer of four words")
    example = asked(gold, text="an answer", evidence=(Span(0, 9),))
    example = replace(example, metadata={"gold": {"labels": [gold]}})
    statistics = metric.statistics(predicted(), example)
    assert statistics is not None
    assert json.loads(json.dumps(statistics)) == statistics
    assert metric.score(statistics) == 0
    assert set(metric.aggregate([statistics]).values()) == {0}
    text = "" if name.startswith("recall") else gold
    whole = metric.statistics(predicted(text, hits=((0, 9),)), example)
    assert whole is not None
    assert metric.score(whole) == pytest.approx(50 if name == "pan21" else 100)


@pytest.mark.parametrize("name", ["exact_match", "f1", "f1_unidecode", "rouge"])
def test_the_best_reference_counts(name: str) -> None:
    """Of several references the most favourable is taken."""
    metric = made(name)
    statistics = metric.statistics(predicted("by train"), asked("a car", "by train", "train"))
    assert statistics is not None
    assert metric.score(statistics) == pytest.approx(100)


def test_emptiness_is_scored_as_officially() -> None:
    """Two texts of articles alone match exactly, and have an F1 of zero."""
    example = asked("the")
    found = {n: METRICS[n]().statistics(predicted("a"), example) for n in ("exact_match", "f1")}
    assert found == {"exact_match": {"exact_match": 100}, "f1": {"f1": 0}}


TEXT = "0123456789 abcdefghi 0123456789"


@pytest.mark.parametrize(
    ("evidence", "hits", "expected"),
    [
        (((0, 10),), ((0, 31),), (100, 100, 100)),
        (((0, 10),), ((11, 20), (0, 5)), (50, 0, 50)),
        (((0, 10), (11, 20)), ((11, 20),), (900 / 19, 50, 100)),
        (((0, 10), (0, 5)), ((0, 5),), (50, 50, 100)),
        (((5, 20),), ((11, 20), (0, 10)), (100, 100, 100)),
        (((0, 10),), ((20, 31),), (0, 0, 0)),
        (((12, 14),), ((0, 12), (14, 31)), (0, 0, 0)),
        (((0, 10),), ((0, 4), (2, 6), (3, 10), (5, 5)), (100, 100, 100)),
    ],
)
def test_recall_counts_the_evidence_that_hits_cover(
    evidence: tuple[tuple[int, int], ...],
    hits: tuple[tuple[int, int], ...],
    expected: tuple[float, float, float],
) -> None:
    """Characters covered, spans wholly covered, and the first hit's rank; blanks do not count."""
    spans = tuple(Span(*pair) for pair in evidence)
    statistics = METRICS["recall"]().statistics(
        predicted(hits=hits), asked(text=TEXT, evidence=spans)
    )
    assert statistics is not None
    assert tuple(statistics.values()) == pytest.approx(expected)


def test_unknown_metrics_are_named() -> None:
    """A metric that is none is refused with what was likely meant."""
    with pytest.raises(UserError, match="no metric 'rogue'; did you mean 'rouge'; allowed:"):
        metrics_of(["f1", "rogue"])
    with pytest.raises(UserError, match="no metric 'F2'"):
        check_metrics(["F2"])
    assert list(metrics_of(["rouge", "f1"])) == ["rouge", "f1"]


# -- references that cannot be scored against, and answers that cannot be read ------------------


@pytest.mark.parametrize(
    ("name", "reference", "told"),
    [
        ("option_letter", "they were curious", "has no letter A, B, C or D"),
        ("exponential_similarity", "60 percent", "has no percentage such as 60%"),
        ("concordance_index", "1", "no order of two or more"),
        ("concordance_index", "1, 2, 2", "no order of two or more"),
        ("pan21", "Anna, Anna, Bert", "no list of the paragraphs' authors"),
        ("pan21", '{"changes": [0], "multi-author": 0}', "no list of the paragraphs' authors"),
        ("pan21", '{"paragraph-authors": [1, 2], "changes": [1, 0]}', "no list of the paragraphs'"),
    ],
)
def test_gold_that_nothing_can_be_scored_against_is_told(
    name: str, reference: str, told: str
) -> None:
    """The error names the example and shows the reference, whatever was answered."""
    for text in (reference, ""):
        with pytest.raises(GoldError, match="example 'x': the reference .*" + told):
            METRICS[name]().statistics(predicted(text), asked(reference))


def test_gold_of_labels_and_of_style_is_checked_too() -> None:
    """A label outside the choices, and authors that were split into many references."""
    with pytest.raises(GoldError, match="the reference 'hero' is none of: Hero, Villain"):
        scored("f1_macro", "Hero", "hero", choices=("Hero", "Villain"))
    with pytest.raises(GoldError, match="has 3 references; one, with all authors, is wanted"):
        scored("pan21", "1, 1, 2", "1", "1", "2")


@pytest.mark.parametrize(
    ("name", "text", "reference", "score", "parses"),
    [
        ("option_letter", "A good guess is B", "B", 0, True),
        ("option_letter", "B's the one", "B", 100, True),
        ("option_letter", "option_B, B2, ABCD", "B", 0, False),
        ("option_letter", "(C) she left", "C) she left", 100, True),
        ("exponential_similarity", "-20% or 90%", "20%", 100, True),
        ("exponential_similarity", ".5%", "5%", 100, True),
        ("exponential_similarity", "1,250%", "250%", 100, True),
        pytest.param("exponential_similarity", "9" * 400 + "%", "60%", 0, True, id="many nines"),
        ("exponential_similarity", "70%", "60%", 50, True),
        ("exponential_similarity", "60 %", "60%", 0, False),
        ("concordance_index", "3-1-2", "3, 1, 2", 0, False),
        ("concordance_index", "1. 3\n2. 1", "3, 1", 0, False),
        ("concordance_index", "003 1\u20032", "3, 1, 2", 100, True),
        pytest.param("concordance_index", "9" * 5000, "3, 1, 2", 0, False, id="nines"),
        ("concordance_index", "1, 3, 2", "3, 1, 2", 200 / 3, True),
    ],
)
def test_answers_are_read_as_the_official_code_reads_them(
    name: str, text: str, reference: str, score: float, parses: bool
) -> None:
    """Quirks included; and `parses` says whether anything was found at all."""
    metric = METRICS[name]()
    assert scored(name, text, reference) == pytest.approx(score)
    assert isinstance(metric, Parses)
    assert metric.parses(text, asked(reference)) == parses


PERFECT = '{"multi-author": true, "changes": [0, 1], "paragraph-authors": ["1", "1", "02"]}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PERFECT, (100, 100, 50)),
        ("[1, 1, 2]", (100, 100, 50)),
        ("1, 1\n2", (100, 100, 50)),
        ("[1, 1, 2, 2]", (100, 0, 0)),
        ("[1, 1, 7]", (100, 100, 25)),
        ('{"paragraph-authors": [1, 1, 2], "multi-author": 0}', (0, 100, 50)),
        ('{"changes": [0, 1]}', (0, 100, 0)),
        ("one, one, two", (0, 0, 0)),
        ("[1, 1.0, 2]", (0, 0, 0)),
        pytest.param("[" * 100_000, (0, 0, 0), id="brackets"),
    ],
)
def test_style_change_is_read_from_any_list(text: str, expected: tuple[float, ...]) -> None:
    """What is not given follows from the authors; a list of another length is no answer."""
    metric = METRICS["pan21"]()
    statistics = metric.statistics(predicted(text), asked("[1, 1, 2]"))
    assert statistics is not None
    assert tuple(metric.aggregate([statistics]).values()) == pytest.approx(expected)
    assert isinstance(metric, Parses)
    wrong_length = text == "[1, 1, 2, 2]"
    assert metric.parses(text, asked("[1, 1, 2]")) == (expected[2] > 0 and not wrong_length)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("Hero", "Hero"), {"f1_macro": 100 / 3, "f1_micro": 50, "f1[Hero]": 200 / 3}),
        (("Hero", "Rogue"), {"f1_macro": 50, "f1_micro": 200 / 3, "f1[Hero]": 100, "f1[Fool]": 0}),
        (("Wit", "Fool"), {"f1_macro": 100 / 3, "f1_micro": 50, "f1[Hero]": 0, "f1[Fool]": 100}),
    ],
)  # fmt: skip
def test_classes_are_those_wanted_or_given(
    texts: Sequence[str], expected: dict[str, float]
) -> None:
    """A choice that never occurs is no class; what is no choice is none either."""
    metric = METRICS["f1_macro"]()
    choices = ("Hero", "Fool", "Wit", "Sage")
    pairs = zip(texts, ("Hero", "Fool"), strict=True)
    found = [metric.statistics(predicted(t), asked(r, choices=choices)) for t, r in pairs]
    scores = metric.aggregate([statistics for statistics in found if statistics])
    assert {n: scores[n] for n in expected} == pytest.approx(expected, abs=1e-4)
    assert ("f1[Wit]" in scores) == ("Wit" in texts)
    assert "f1[Sage]" not in scores
    assert isinstance(metric, Parses)
    assert [metric.parses(t, asked("Hero", choices=choices)) for t in texts] == [
        text in choices for text in texts
    ]


def test_no_answer_is_an_answer_of_its_own() -> None:
    """Said, withheld or empty; wanted where no reference knows better."""
    metric = METRICS["no_answer"]()
    pairs = [
        ("Unanswerable.", ("unanswerable",)),
        ("the mill", ("unanswerable", "The question is unanswerable")),
        ("", ("unanswerable", "a mill")),
        ("the mill", ("a mill",)),
    ]
    found = [metric.statistics(predicted(text), asked(*references)) for text, references in pairs]
    withheld = replace(predicted("no idea"), abstained=True)
    found.append(metric.statistics(withheld, asked("unanswerable")))
    assert [s and (s["wanted"], s["given"]) for s in found] == [
        (True, True), (True, False), (False, True), (False, False), (True, True),
    ]  # fmt: skip
    scores = metric.aggregate([statistics for statistics in found if statistics])
    assert scores == {name: pytest.approx(200 / 3, abs=1e-3) for name in scores}
    assert metric.statistics(predicted("x"), asked()) is None


# -- what some metrics need ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("f1_unidecode", "unidecode", "zero-scrolls"),
        ("bleu_coco", "pycocoevalcap", "muld"),
        ("rouge_l_coco", "pycocoevalcap", "muld"),
        ("meteor_coco", "pycocoevalcap", "muld"),
    ],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    """Before any work, with the package and what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    told = rf"metric '{name}' needs the package {module},.*pip install 'leporello\[{extra}\]'"
    with pytest.raises(UserError, match=told):
        metrics_of([name])


@pytest.mark.parametrize("name", ["bleu_coco", "rouge_l_coco", "meteor_coco"])
def test_a_missing_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """With what to install."""
    (tmp_path / "pycocoevalcap").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UserError, match=f"metric '{name}' runs Java.*no `java` on the path"):
        metrics_of([name])


ECHO = """
import sys
for number, line in enumerate(sys.stdin):
    if line == "die\\n":
        sys.exit("out of memory")
    print(number, line, end="", flush=True)
"""


def echo() -> LineProcess:
    """Returns a program that counts and repeats lines, and dies when it is told to."""
    return LineProcess([sys.executable, "-c", ECHO], Path.cwd())


@pytest.mark.parametrize("attempt", [1, 2])
def test_a_program_that_died_says_why_and_starts_again(attempt: int) -> None:
    """The question that killed it fails alone."""
    program = echo()
    for _ in range(attempt):
        with pytest.raises(RuntimeError, match="ended: out of memory"):
            program.ask(["die"], 1)
    assert program.ask(["again"], 1) == ["0 again"]
    program.close()


@pytest.mark.parametrize(
    ("answer", "said", "reference", "score"),
    [
        ("number", "1200", "1,200 people", 100),
        ("date", "2020-03-01", "March 1, 2020", 100),
        ("date", "2020-03-02", "March 1, 2020", 0),
        ("yes_no", "yes", "Yes.", 100),
        ({"type": "list", "items": "text"}, '["b", "a"]', "a, b and c", 80),
        ({"fields": {"a": "date", "b": "text"}}, '{"a": "2020-03-01", "b": null}',
         '{"a": "March 1, 2020", "b": "x"}', 50),
        ("number", "", "", 100),
        ("number", "many", "3", 0),
    ],
)  # fmt: skip
def test_values_are_compared_as_their_type(
    answer: Any, said: str, reference: str, score: float
) -> None:
    """Numbers and dates as such, lists as sets, objects by field."""
    metric = made("typed_match")
    example = replace(asked(reference), schema=schema_of(answer))
    statistics = metric.statistics(predicted(said), example)
    assert statistics is not None
    assert metric.score(statistics) == pytest.approx(score)
