"""What one pipeline on one task came to: scores, failures, coverage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from leporello.metrics import Metric

__all__ = ["Result", "summarise"]


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table of scores.

    Attributes:
        pipeline: Its name, with the sweep point.
        task: Its name.
        examples: Finished, failed ones included.
        failures: Scored as empty predictions.
        empty: Predictions that are empty without having failed.
        scores: By name, 0 to 100.
        signatures: By metric: what exactly was computed.
        sees_gold: Whether a stage had the references or the evidence in view (an oracle).
        selected: Mean share of the document that the hits cover.
        read: Mean share that the reader saw.
        cut: Mean share of what was selected that the reader did not see.
    """

    pipeline: str
    task: str
    examples: int
    failures: int
    empty: int
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    sees_gold: bool
    selected: float
    read: float
    cut: float


def summarise(
    pipeline: str,
    task: str,
    rows: Iterable[Mapping[str, Any]],
    metrics: Mapping[str, Metric],
    *,
    sees_gold: bool = False,
) -> Result:
    """Aggregates finished rows, as a journal holds them."""
    statistics: dict[str, list[Any]] = {name: [] for name in metrics}
    ledgers: list[Mapping[str, int]] = []
    failures = empty = 0
    for row in rows:
        for name, value in row["statistics"].items():
            if value is not None:
                statistics[name].append(value)
        if "failure" in row:
            failures += 1
        else:
            empty += not row["prediction"]["prediction"]
            ledgers.append(row["prediction"]["coverage"])
    scores: dict[str, float] = {}
    for name, metric in metrics.items():
        if statistics[name]:
            scores |= metric.aggregate(statistics[name])
    return Result(
        pipeline=pipeline,
        task=task,
        examples=failures + len(ledgers),
        failures=failures,
        empty=empty,
        scores=scores,
        signatures={name: metric.signature for name, metric in metrics.items()},
        sees_gold=sees_gold,
        selected=_mean_share(ledgers, "selected", "document"),
        read=_mean_share(ledgers, "read", "document"),
        cut=_mean_share(ledgers, "cut", "selected"),
    )


def _mean_share(ledgers: Iterable[Mapping[str, int]], part: str, whole: str) -> float:
    shares = [ledger[part] / ledger[whole] for ledger in ledgers if ledger.get(whole)]
    return round(fmean(shares), 6) if shares else 0.0
