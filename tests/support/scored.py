"""Predictions, examples and metrics for tests of scores."""

from typing import Any

import pytest

from leporello import Coverage, Document, Example, Prediction, Span
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics import Metric


def prediction_of(text: str = "", hits: tuple[tuple[int, int], ...] = ()) -> Prediction:
    """Returns a prediction; without arguments, the empty prediction of a failure."""
    scored_hits = tuple((start, end, 1.0) for start, end in hits)
    read = tuple(Span(start, end) for start, end in hits)
    return Prediction("x", text, text, scored_hits, read, Coverage(0, 0, 0, 0), "")


def example_of(*references: str, text: str = "", **fields: Any) -> Example:
    """Returns an example with these references, on a document with this text."""
    return Example("x", Document("d", text), references=references, **fields)


def metric_named(name: str) -> Metric:
    """Returns a metric; skips the test with the reason if a requirement is missing."""
    try:
        return metrics_of([name])[name]
    except UserError as error:
        pytest.skip(str(error))


def score_of(metric: Metric, text: str, example: Example) -> float:
    """Returns the score of one text, 0 to 100."""
    statistics = metric.statistics(prediction_of(text), example)
    assert statistics is not None
    return metric.score(statistics)
