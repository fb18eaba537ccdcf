"""Edge cases of the metrics; `tests/metrics/test_golden.py` has the official numbers."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scored import example_of, metric_named, prediction_of, score_of

from leporello import Span
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics import METRICS, GoldError, check_metrics, judging_metric
from leporello.metrics.coco.java import LineProcess
from leporello.text.typed.schema import schema_of


@pytest.mark.parametrize("name", sorted(METRICS))
def test_examples_without_gold_are_not_scored(name: str) -> None:
    """Every metric has its name and a signature."""
    metric = metric_named(name)
    assert metric.name == name
    assert metric.signature.startswith(f"{name}|")
    assert "version:1" in metric.signature
    assert metric.statistics(prediction_of("text"), example_of()) is None


@pytest.mark.parametrize("name", ["exact_match", "f1", "f1_unidecode", "rouge"])
def test_the_best_reference_counts(name: str) -> None:
    example = example_of("a car", "by train", "train")
    assert score_of(metric_named(name), "by train", example) == pytest.approx(100)


@pytest.mark.parametrize(("name", "score"), [("exact_match", 100), ("f1", 0)])
def test_texts_of_only_articles_score_as_in_the_official_code(name: str, score: int) -> None:
    assert score_of(METRICS[name](), "a", example_of("the")) == score


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
    spans = tuple(Span(*pair) for pair in evidence)
    statistics = METRICS["recall"]().statistics(
        prediction_of(hits=hits), example_of(text=TEXT, evidence=spans)
    )
    assert statistics is not None
    assert tuple(statistics.values()) == pytest.approx(expected)


def test_unknown_metrics_are_named() -> None:
    with pytest.raises(UserError, match="no metric 'rogue'; did you mean 'rouge'; name your own"):
        metrics_of(["f1", "rogue"])
    with pytest.raises(UserError, match="no metric 'F2'"):
        check_metrics(["F2"])
    assert list(metrics_of(["rouge", "f1"])) == ["rouge", "f1"]


@pytest.mark.parametrize(
    ("entry", "reference", "fault"),
    [
        ("option_letter", "they were curious", "has no letter A, B, C or D"),
        ("exponential_similarity", "60 percent", "has no percentage such as 60%"),
        ("concordance_index", "1", "not an order of two or more"),
        ("pan21", "Anna, Anna, Bert", "not a list of paragraph authors"),
        ("pan21", '{"changes": [0], "multi-author": 0}', "not a list of paragraph authors"),
        ("pan21", '{"paragraph-authors": [1, 2], "changes": [1, 0]}', "not a list of paragraph"),
        ({"class": "longbench", "score_by": "retrieval"}, "Chapter 3", "names no `Paragraph N`"),
        ("longbench_v2", "E", "is not one of A, B, C and D"),
        ({"class": "infinite_bench", "task": "code_run"}, "x", "are not valid for code_run"),
        ({"class": "infinite_bench", "task": "code_debug"}, "x", "are not valid for code_debug"),
        ({"class": "infinite_bench", "task": "math_find"}, "x", "are not valid for math_find"),
        ({"class": "infinite_bench", "task": "math_calc"}, "7", "are not valid for math_calc"),
        ("loogle_cloze", "Bob", "is not a JSON object of masks and texts"),
    ],
)
def test_invalid_references_are_reported(entry: Any, reference: str, fault: str) -> None:
    [metric] = metrics_of([entry]).values()
    # Without a value in the answer, some metrics return 0 before they read the reference.
    for text in (reference, "") if isinstance(entry, str) else ("one 7",):
        with pytest.raises(GoldError, match="example 'x': the references? .*" + fault):
            metric.statistics(prediction_of(text), example_of(reference))


def test_invalid_labels_and_authors_are_reported() -> None:
    labelled = example_of("hero", choices=("Hero", "Villain"))
    with pytest.raises(GoldError, match="the reference 'hero' is not one of: Hero, Villain"):
        score_of(metric_named("f1_macro"), "Hero", labelled)
    with pytest.raises(GoldError, match="has 3 references; provide one, with all authors"):
        score_of(metric_named("pan21"), "1, 1, 2", example_of("1", "1", "2"))


@pytest.mark.parametrize(
    ("name", "text", "reference", "score"),
    [
        ("option_letter", "A good guess is B", "B", 0),
        ("option_letter", "option_B, B2, ABCD", "B", 0),
        ("option_letter", "(C) she left", "C) she left", 100),
        ("exponential_similarity", "-20% or 90%", "20%", 100),
        ("exponential_similarity", "1,250%", "250%", 100),
        pytest.param("exponential_similarity", "9" * 400 + "%", "60%", 0, id="many nines"),
        ("exponential_similarity", "70%", "60%", 50),
        ("exponential_similarity", "60 %", "60%", 0),
        ("concordance_index", "3-1-2", "3, 1, 2", 0),
        ("concordance_index", "1. 3\n2. 1", "3, 1", 0),
        ("concordance_index", "003 1\u20032", "3, 1, 2", 100),
        pytest.param("concordance_index", "9" * 5000, "3, 1, 2", 0, id="nines"),
        ("concordance_index", "1, 3, 2", "3, 1, 2", 200 / 3),
    ],
)
def test_answers_are_read_as_the_official_code_reads_them(
    name: str, text: str, reference: str, score: float
) -> None:
    metric = METRICS[name]()
    assert score_of(metric, text, example_of(reference)) == pytest.approx(score)


PERFECT = '{"multi-author": true, "changes": [0, 1], "paragraph-authors": ["1", "1", "02"]}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PERFECT, (100, 100, 50)),
        ("[1, 1, 2]", (100, 100, 50)),
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
    metric = METRICS["pan21"]()
    statistics = metric.statistics(prediction_of(text), example_of("[1, 1, 2]"))
    assert statistics is not None
    assert tuple(metric.aggregate([statistics]).values()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("Hero", "Hero"), {"f1_macro": 100 / 3, "f1_micro": 50, "f1[Hero]": 200 / 3}),
        (("Hero", "Rogue"), {"f1_macro": 50, "f1_micro": 200 / 3, "f1[Hero]": 100, "f1[Fool]": 0}),
        (("Wit", "Fool"), {"f1_macro": 100 / 3, "f1_micro": 50, "f1[Hero]": 0, "f1[Fool]": 100}),
    ],
)  # fmt: skip
def test_classes_are_labels_that_occur(texts: Sequence[str], expected: dict[str, float]) -> None:
    metric = METRICS["f1_macro"]()
    choices = ("Hero", "Fool", "Wit", "Sage")
    pairs = zip(texts, ("Hero", "Fool"), strict=True)
    rows = [metric.statistics(prediction_of(t), example_of(r, choices=choices)) for t, r in pairs]
    scores = metric.aggregate([statistics for statistics in rows if statistics])
    assert {n: scores[n] for n in expected} == pytest.approx(expected, abs=1e-4)
    assert ("f1[Wit]" in scores) == ("Wit" in texts)
    assert "f1[Sage]" not in scores


def test_no_answer_is_scored_separately() -> None:
    metric = METRICS["no_answer"]()
    pairs = [
        ("Unanswerable.", ("unanswerable",)),
        ("the mill", ("unanswerable", "The question is unanswerable")),
        ("", ("unanswerable", "a mill")),
        ("the mill", ("a mill",)),
    ]
    rows = [metric.statistics(prediction_of(t), example_of(*golds)) for t, golds in pairs]
    withheld = replace(prediction_of("no idea"), abstained=True)
    rows.append(metric.statistics(withheld, example_of("unanswerable")))
    assert [s and (s["wanted"], s["given"]) for s in rows] == [
        (True, True), (True, False), (False, True), (False, False), (True, True),
    ]  # fmt: skip
    scores = metric.aggregate([statistics for statistics in rows if statistics])
    assert scores == {name: pytest.approx(200 / 3, abs=1e-3) for name in scores}


@pytest.mark.parametrize(
    ("names", "judging"),
    [
        (("bleu_coco", "meteor_coco", "rouge_l_coco"), "rouge_l_coco"),
        (("recall", "f1", "exact_match"), "f1"),
        (("recall",), "recall"),
        ((), ""),
    ],
)
def test_answers_are_judged_by_the_tasks_f_measure(names: tuple[str, ...], judging: str) -> None:
    """BLEU of a right answer of one word is nearly zero."""
    assert judging_metric(names) == judging


@pytest.mark.parametrize(
    ("entry", "module", "extra"),
    [
        ("f1_unidecode", "unidecode", "zero-scrolls"),
        ("bleu_coco", "pycocoevalcap", "muld"),
        ("rouge_l_coco", "pycocoevalcap", "muld"),
        ("meteor_coco", "pycocoevalcap", "muld"),
        ({"class": "longbench", "score_by": "rouge_l_zh"}, "jieba", "chinese"),
    ],
)
def test_a_missing_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, entry: Any, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    name = entry if isinstance(entry, str) else entry["class"]
    start = rf"metric '{name}'( with score_by: rouge_l_zh)? needs the package {module},"
    message = rf"{start}.*pip install 'leporello\[{extra}\]'"
    with pytest.raises(UserError, match=message):
        metrics_of([entry])


@pytest.mark.parametrize("name", ["bleu_coco", "rouge_l_coco", "meteor_coco"])
def test_missing_java_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "pycocoevalcap").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UserError, match=f"metric '{name}' runs Java.*`java` is not on the path"):
        metrics_of([name])


# Counts and repeats lines, and exits at the line `die`.
ECHO = """
import sys
for number, line in enumerate(sys.stdin):
    if line == "die\\n":
        sys.exit("out of memory")
    print(number, line, end="", flush=True)
"""


def test_a_program_that_exits_is_reported_and_restarts() -> None:
    program = LineProcess([sys.executable, "-c", ECHO], Path.cwd())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="ended: out of memory"):
            program.ask(["die"], 1)
    assert program.ask(["again"], 1) == ["0 again"]
    program.close()


@pytest.mark.parametrize(
    ("answer", "text", "reference", "score"),
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
def test_values_are_compared_by_type(answer: Any, text: str, reference: str, score: float) -> None:
    example = example_of(reference, schema=schema_of(answer))
    assert score_of(metric_named("typed_match"), text, example) == pytest.approx(score)
