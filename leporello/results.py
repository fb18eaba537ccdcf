"""What one pipeline on one task came to: its files, scores, failures, coverage."""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from leporello.directory import atomically
from leporello.metrics import Metric
from leporello.metrics.many import Many
from leporello.records import JSON
from leporello.signature import digest

__all__ = ["Result", "Summary", "write_results"]


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
        noted: Examples that a stage noted something of.
        notes: Those noted of most examples, with their number.
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
    noted: int
    notes: Mapping[str, int]


@dataclass
class Summary:
    """Takes finished rows, as a journal holds them, and comes to a `Result`.

    Attributes:
        metrics: By name.
        failures: How many, by stage and the error's first line.
    """

    metrics: Mapping[str, Metric]
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    _empty: int = 0
    _noted: int = 0
    _notes: Counter[str] = field(default_factory=Counter)
    _predictions: int = 0
    _statistics: dict[str, Many] = field(default_factory=lambda: defaultdict(Many))
    _shares: dict[str, array[float]] = field(
        default_factory=lambda: defaultdict(lambda: array("d"))
    )

    def add(self, row: Mapping[str, Any]) -> None:
        """Counts a finished example."""
        for name, value in row["statistics"].items():
            if value is not None:
                self._statistics[name].append(value)
        if failure := row.get("failure"):
            self.failures[failure["stage"], failure["error"].partition("\n")[0]] += 1
            return
        self._predictions += 1
        self._empty += not row["prediction"]["prediction"]
        notes = row.get("notes", ())  # a file that is scored has none
        self._noted += bool(notes)
        self._notes.update(notes)
        ledger = row["prediction"]["coverage"]
        for part, whole in _SHARES.items():
            if ledger[whole]:
                self._shares[part].append(ledger[part] / ledger[whole])

    def result(self, pipeline: str, task: str, *, sees_gold: bool = False) -> Result:
        """Returns what it all came to."""
        scores: dict[str, float] = {}
        for name, metric in self.metrics.items():
            if self._statistics[name]:
                scores |= metric.aggregate(self._statistics[name])
        failures = self.failures.total()
        shares = {n: round(fmean(self._shares[n]), 6) if self._shares[n] else 0.0 for n in _SHARES}
        return Result(
            pipeline=pipeline,
            task=task,
            examples=failures + self._predictions,
            failures=failures,
            empty=self._empty,
            scores=scores,
            signatures={name: metric.signature for name, metric in self.metrics.items()},
            sees_gold=sees_gold,
            **shares,
            noted=self._noted,
            notes=dict(self._notes.most_common(_NOTES)),
        )


_NOTES = 5  # that are told; calls.jsonl has them all
_SHARES = {"selected": "document", "read": "document", "cut": "selected"}


def write_results(folder: Path, rows: Iterable[Mapping[str, Any]], summary: Summary) -> None:
    """Writes predictions, calls and failures, and adds every row to a summary, in one pass.

    Args:
        folder: Of one pipeline on one task.
        rows: Finished ones in task order, as the journal holds them.
        summary: Told of each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (
        atomically(folder / "predictions.jsonl") as predictions,
        atomically(folder / "calls.jsonl") as calls,
        atomically(folder / "failures.jsonl") as failures,
    ):
        for row in rows:
            summary.add(row)
            if "failure" in row:
                failures.write(_line(_with_traceback_file(folder, row["failure"])))
            else:
                prediction = row["prediction"]
                predictions.write(_line(prediction))
                read = {"calls": row["calls"], "notes": row.get("notes", [])}
                calls.write(_line({"id": prediction["id"], **read}))


def _with_traceback_file(folder: Path, failure: Mapping[str, Any]) -> dict[str, JSON]:
    """Returns the failure with a file in place of the traceback; equal ones share it."""
    trace = failure["traceback"]
    if not trace:
        return {**failure}
    path = folder / "tracebacks" / f"{digest(trace)}.txt"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(trace, encoding="utf-8", errors="surrogatepass")
    return {**failure, "traceback": f"{path.parent.name}/{path.name}"}


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"
