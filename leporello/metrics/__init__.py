"""Metrics: the benchmarks' own arithmetic, 0 to 100, each with a signature that says what it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from leporello.errors import UserError, did_you_mean
from leporello.metrics.exact_match import ExactMatch
from leporello.metrics.f1 import F1
from leporello.metrics.metric import Metric, Statistics
from leporello.metrics.recall import Recall
from leporello.metrics.rouge import Rouge

__all__ = ["METRICS", "Metric", "Statistics", "check_metrics", "make_metrics"]

METRICS: Mapping[str, type[Metric]] = {
    "exact_match": ExactMatch,
    "f1": F1,
    "recall": Recall,
    "rouge": Rouge,
}


def make_metrics(names: Iterable[str]) -> dict[str, Metric]:
    """Returns the metrics of these names, in this order.

    Raises:
        UserError: There is no metric of such a name.
    """
    wanted = tuple(names)
    try:
        check_metrics(wanted)
    except ValueError as error:
        raise UserError(str(error)) from None
    return {name: METRICS[name]() for name in wanted}


def check_metrics(names: Iterable[str]) -> None:
    """Checks the parameter `metrics` of a task.

    Raises:
        ValueError: There is no metric of such a name.
    """
    for name in names:
        if name not in METRICS:
            raise ValueError(f"there is no metric {name!r}{did_you_mean(name, METRICS)}")
