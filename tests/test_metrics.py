"""Metrics against the official scorers' numbers, and their edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leporello import Coverage, Document, Example, Prediction, Span
from leporello.errors import UserError
from leporello.metrics import METRICS, check_metrics, make_metrics

GOLDEN = json.loads((Path(__file__).parent / "golden_scrolls.json").read_text(encoding="utf-8"))


def predicted(text: str = "", hits: tuple[tuple[int, int], ...] = ()) -> Prediction:
    """Returns a prediction; without arguments, what a failure is scored as."""
    scored = tuple((start, end, 1.0) for start, end in hits)
    return Prediction("x", text, text, scored, (), Coverage(0, 0, 0, 0), "")


def asked(*references: str, text: str = "", evidence: tuple[Span, ...] = ()) -> Example:
    """Returns an example with this gold."""
    document = Document("d", text)
    return Example("x", document, references=references, evidence=evidence)


@pytest.mark.parametrize("case", GOLDEN, ids=[case["id"] for case in GOLDEN])
def test_scores_are_the_official_ones(case: dict[str, Any]) -> None:
    """Totals and per-example scores equal the SCROLLS scorer's to four decimals."""
    metric = METRICS[case["metric"]]()
    pairs = zip(case["predictions"], case["references"], strict=True)
    statistics = [metric.statistics(predicted(p), asked(*r)) for p, r in pairs]
    found = [s for s in statistics if s is not None]
    assert len(found) == len(case["predictions"])
    assert metric.aggregate(found)[case["metric"]] == pytest.approx(case["score"], abs=1e-4)
    for statistic, expected in zip(found, case["per_example"], strict=True):
        if isinstance(expected, dict):
            assert statistic == pytest.approx({k: expected[k] for k in statistic}, abs=1e-4)
        else:
            assert metric.score(statistic) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_names_and_signs_itself(name: str) -> None:
    """A metric's name is its key, and leads its signature."""
    metric = METRICS[name]()
    assert metric.name == name
    assert metric.signature.startswith(f"{name}|")
    assert "version:1" in metric.signature


@pytest.mark.parametrize("name", sorted(METRICS))
def test_what_has_no_gold_is_not_scored(name: str) -> None:
    """Without references or evidence an example has no statistics, and none make no score."""
    metric = METRICS[name]()
    assert metric.statistics(predicted("text"), asked()) is None
    assert metric.aggregate([]) == {}


@pytest.mark.parametrize("name", sorted(METRICS))
def test_a_failure_scores_zero(name: str) -> None:
    """The empty prediction of a failed example is scored, as zero, in numbers that JSON holds."""
    metric = METRICS[name]()
    example = asked("an answer", text="an answer", evidence=(Span(0, 9),))
    statistics = metric.statistics(predicted(), example)
    assert statistics is not None
    assert json.loads(json.dumps(statistics)) == statistics
    assert metric.score(statistics) == 0
    assert set(metric.aggregate([statistics]).values()) == {0}


@pytest.mark.parametrize("name", ["exact_match", "f1", "rouge"])
def test_the_best_reference_counts(name: str) -> None:
    """Of several references the most favourable is taken."""
    metric = METRICS[name]()
    statistics = metric.statistics(predicted("by train"), asked("a car", "by train", "train"))
    assert statistics is not None
    assert metric.score(statistics) == pytest.approx(100)


def test_emptiness_is_scored_as_officially() -> None:
    """Two texts of articles alone match exactly, and have an F1 of zero."""
    example = asked("the")
    found = {n: METRICS[n]().statistics(predicted("a"), example) for n in ("exact_match", "f1")}
    assert found == {"exact_match": {"exact_match": 100}, "f1": {"f1": 0}}


def test_rouge_averages_before_it_multiplies() -> None:
    """The corpus score is the geometric mean of means, not the mean of geometric means."""
    rouge = METRICS["rouge"]()
    one = {"rouge1": 100.0, "rouge2": 0.0, "rougeL": 100.0}
    two = {"rouge1": 100.0, "rouge2": 100.0, "rougeL": 100.0}
    assert rouge.aggregate([one, two])["rouge"] == pytest.approx(79.3701)
    assert [rouge.score(one), rouge.score(two)] == pytest.approx([0, 100])


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


def test_recall_of_blank_evidence_is_not_scored() -> None:
    """Evidence of white space alone proves nothing."""
    example = asked(text="a  b", evidence=(Span(1, 3),))
    assert METRICS["recall"]().statistics(predicted(), example) is None


def test_unknown_metrics_are_named() -> None:
    """A metric that is none is refused with what was likely meant."""
    with pytest.raises(UserError, match="no metric 'rogue'; did you mean 'rouge'; allowed:"):
        make_metrics(["f1", "rogue"])
    with pytest.raises(ValueError, match="no metric 'F2'"):
        check_metrics(["F2"])
    assert list(make_metrics(["rouge", "f1"])) == ["rouge", "f1"]
