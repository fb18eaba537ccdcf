"""Outcomes of pipelines, read from the directories of their runs, and oracle gaps between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.analysis.finished import FinishedJob, FinishedRun
from leporello.analysis.oracle_baselines import ORACLES
from leporello.core.errors import UserError
from leporello.core.files import read_json
from leporello.engine.results.finished import ExampleStatistics
from leporello.jobs.checksums import check_results
from leporello.jobs.directory import RunDirectory


@dataclass(frozen=True)
class Outcomes:
    """One pipeline on one task of a run.

    Attributes:
        job: The pipeline and the task, with the signature of the results.
        signatures: Signatures of the metrics, by name: what exactly was computed.
        sees_gold: Whether a stage had the references or the evidence in view.
        normalised: Whether answers were brought into the form that metrics read.
        tuned: Number of the documents that its parameters were chosen on.
        seconds: Seconds of an example's dividing, selecting and reading, as last measured; None if
            they were not.
        finished: Finished examples by id, in task order.
    """

    job: FinishedJob
    signatures: Mapping[str, str]
    sees_gold: bool
    normalised: bool
    tuned: int
    seconds: float | None
    finished: Mapping[str, ExampleStatistics]

    @property
    def metrics(self) -> list[str]:
        """The metrics' names, in the task's order."""
        names = (name for example in self.finished.values() for name in example.statistics)
        return list(dict.fromkeys(names))

    def stage(self, key: str) -> Mapping[str, Any]:
        """Returns a stage's class and parameters, by its key in YAML."""
        stage: Mapping[str, Any] = self.job.signature["pipeline"][key]
        return stage


def outcomes(runs: Sequence[Path]) -> list[Outcomes]:
    """Returns every pipeline on every task of these runs, in their order.

    Raises:
        UserError: No run lies there, one is given twice, or nothing of it is finished.
    """
    directories = [run.resolve() for run in runs]
    if twice := next((run for run in runs if directories.count(run.resolve()) > 1), None):
        raise UserError(f"{twice}: the run is given twice")
    return [job for run in runs for job in _of_run(run)]


def _of_run(run: Path) -> list[Outcomes]:
    jobs = [_outcomes_of(job) for job in FinishedRun.at(run).jobs]
    if not any(job.finished for job in jobs):
        raise UserError(f"{run}: nothing of this run is finished yet")
    return [job for job in jobs if job.finished]


def _outcomes_of(job: FinishedJob) -> Outcomes:
    names = job.run.directory, job.pipeline, job.task
    metrics, timings = derived(*names, "metrics.json"), derived(*names, "timings.json")
    return Outcomes(
        job,
        signatures=metrics.get("signatures", {}),
        sees_gold=bool(metrics.get("sees_gold")),
        # Of 0.2, a task said it.
        normalised=bool(metrics.get("normalised", job.signature["task"].get("normalised"))),
        tuned=int(metrics.get("tuned", 0)),
        seconds=_seconds(timings),
        finished={example.id: example for example in job.files.statistics()},
    )


def derived(directory: RunDirectory, pipeline: str, task: str, name: str) -> Mapping[str, Any]:
    """Returns a derived file; nothing where a run was killed before it derived it."""
    path = directory.results(pipeline, task) / name
    check_results(path.parent, name)
    values: Mapping[str, Any] = read_json(path) if path.exists() else {}
    return values


def _seconds(timings: Mapping[str, Any]) -> float | None:
    """Returns the seconds that an example took."""
    if not timings.get("examples"):
        return None
    spent = timings["selecting"]["seconds"] + timings["reading"]["seconds"]
    return float(spent / timings["examples"])


_STAGES = ("chunker", "reader", "combiner")


@dataclass(frozen=True, slots=True)
class OracleGap:
    """Pipelines that differ in nothing but the retriever, and some of whose retrievers are oracles.

    Attributes:
        pipelines: Labels of those with a retriever of their own.
        rungs: Classes and labels of those with an oracle's, chance's or no retriever, best first.
    """

    pipelines: tuple[str, ...]
    rungs: tuple[tuple[str, str], ...]


def oracle_gaps(outcomes: Sequence[Outcomes], labels: Sequence[str]) -> tuple[OracleGap, ...]:
    """Returns the oracle gaps among pipelines on one task, each with a pipeline to measure."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for outcome, label in zip(outcomes, labels, strict=True):
        others = json.dumps([outcome.stage(key) for key in _STAGES], sort_keys=True)
        alike.setdefault(others, []).append((str(outcome.stage("retriever")["class"]), label))
    gaps = [_oracle_gap(group) for group in alike.values()]
    return tuple(gap for gap in gaps if gap.pipelines and gap.rungs)


def _oracle_gap(group: Sequence[tuple[str, str]]) -> OracleGap:
    oracles = sorted(
        (pair for pair in group if pair[0] in ORACLES), key=lambda p: ORACLES.index(p[0])
    )
    return OracleGap(tuple(label for name, label in group if name not in ORACLES), tuple(oracles))
