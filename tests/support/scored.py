"""Predictions, examples and metrics for tests of scores."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from leporello import Coverage, Document, Example, Prediction, Span
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.core.protocols import MetricEntry
from leporello.metrics import Metric, Statistics


def prediction_of(text: str = "", hits: tuple[tuple[int, int], ...] = ()) -> Prediction:
    """Returns a prediction; without arguments, the empty prediction of a failure."""
    scored_hits = tuple((start, end, 1.0) for start, end in hits)
    read = tuple(Span(start, end) for start, end in hits)
    return Prediction("x", text, text, scored_hits, read, Coverage(0, 0, 0, 0), "")


def example_of(*references: str, text: str = "", **fields: Any) -> Example:
    """Returns an example with these references, on a document with this text."""
    return Example("x", Document("d", text), references=references, **fields)


def metric_named(name: str, entries: Sequence[MetricEntry] = ()) -> Metric:
    """Returns a metric, by default without parameters; skips the test if a requirement misses."""
    try:
        return metrics_of(entries or [name])[name]
    except UserError as error:
        pytest.skip(str(error))


def check_official(
    metric: Metric, rows: Sequence[Statistics], case: Mapping[str, Any], rounding: float = 1e-4
) -> None:
    """Compares scores of examples, the total and other means with those of the official code."""
    for statistics, expected in zip(rows, case["per_example"], strict=True):
        score = statistics if isinstance(expected, dict) else metric.score(statistics)
        assert score == pytest.approx(expected, abs=1e-9)
    scores = metric.aggregate(rows)
    total = scores.get(metric.name, scores.get(metric.headline))
    assert total == pytest.approx(case["score"], abs=rounding)
    for name, mean in case.get("means", {}).items():
        assert scores[name] == pytest.approx(mean, abs=rounding)


def score_of(metric: Metric, text: str, example: Example) -> float:
    """Returns the score of one text, 0 to 100."""
    statistics = metric.statistics(prediction_of(text), example)
    assert statistics is not None
    return metric.score(statistics)
