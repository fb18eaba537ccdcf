"""Reads the outcomes of pipelines from run directories, and finds oracle gaps between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.analysis.finished import FinishedJob, FinishedRun
from leporello.analysis.oracle_baselines import ORACLES
from leporello.core.errors import UserError, check_list
from leporello.core.files import read_json
from leporello.engine.results.finished import ExampleStatistics
from leporello.jobs.directory import RunDirectory
from leporello.jobs.manifest import check_results


@dataclass(frozen=True)
class Outcomes:
    """One pipeline on one task of a run."""

    job: FinishedJob  # the pipeline and the task, with the signature of the results
    signatures: Mapping[str, str]  # of the metrics, which identify the exact computation
    sees_gold: bool  # whether a stage used references or evidence
    normalised: bool  # whether answers were normalised for the metrics
    tuned: int  # number of documents on which the pipeline's parameters were tuned
    seconds: float | None  # of chunking, retrieval and reading per example; None if not measured
    finished: Mapping[str, ExampleStatistics]  # finished examples by id, in task order

    @property
    def metrics(self) -> list[str]:
        """The metrics' names, in the task's order."""
        names = (name for example in self.finished.values() for name in example.statistics)
        return list(dict.fromkeys(names))

    def stage(self, key: str) -> Mapping[str, Any]:
        """Returns the class and parameters of the stage under a YAML key."""
        stage: Mapping[str, Any] = self.job.signature["pipeline"][key]
        return stage


def outcomes(runs: Sequence[Path | str]) -> list[Outcomes]:
    """Returns every pipeline on every task of these runs, in their order.

    Raises UserError if a directory has no run, is named twice, or has no finished example.
    """
    check_list("runs", runs)
    directories = [Path(run).resolve() for run in runs]
    if repeated := [run for run in directories if directories.count(run) > 1]:
        raise UserError(f"{repeated[0]}: the run is named twice")
    if not directories:
        raise UserError("runs is empty: name at least one run")
    all_outcomes = []
    for run in runs:
        jobs = [_outcomes_of(job) for job in FinishedRun.at(run).jobs]
        if not any(job.finished for job in jobs):
            raise UserError(f"{run}: this run has no finished examples yet")
        all_outcomes += [job for job in jobs if job.finished]
    return all_outcomes


def _outcomes_of(job: FinishedJob) -> Outcomes:
    names = job.run.directory, job.pipeline, job.task
    metrics, timings = derived(*names, "metrics.json"), derived(*names, "timings.json")
    return Outcomes(
        job,
        signatures=metrics.get("signatures", {}),
        sees_gold=bool(metrics.get("sees_gold")),
        # Until 0.2, `normalised` was a parameter of the task.
        normalised=bool(metrics.get("normalised", job.signature["task"].get("normalised"))),
        tuned=int(metrics.get("tuned", 0)),
        seconds=_seconds(timings),
        finished={example.id: example for example in job.files.statistics()},
    )


def derived(directory: RunDirectory, pipeline: str, task: str, name: str) -> Mapping[str, Any]:
    """Returns the content of a result file; empty if the run was killed before writing it."""
    path = directory.results(pipeline, task) / name
    check_results(path.parent, name)
    values: Mapping[str, Any] = read_json(path) if path.exists() else {}
    return values


def _seconds(timings: Mapping[str, Any]) -> float | None:
    if not timings.get("examples"):
        return None
    spent = timings["selecting"]["seconds"] + timings["reading"]["seconds"]
    return float(spent / timings["examples"])


_STAGES = ("chunker", "reader", "combiner")


@dataclass(frozen=True, slots=True)
class OracleGap:
    """Pipelines that differ only in the retriever, and of which some use oracles or baselines."""

    pipelines: tuple[str, ...]  # labels of the pipelines with real retrievers
    rungs: tuple[tuple[str, str], ...]  # classes and labels of oracles and baselines, best first


def oracle_gaps(outcomes: Sequence[Outcomes], labels: Sequence[str]) -> tuple[OracleGap, ...]:
    """Returns the oracle gaps among pipelines on one task that include a real retriever."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for outcome, label in zip(outcomes, labels, strict=True):
        stages = json.dumps([outcome.stage(key) for key in _STAGES], sort_keys=True)
        groups.setdefault(stages, []).append((str(outcome.stage("retriever")["class"]), label))
    gaps = [_oracle_gap(group) for group in groups.values()]
    return tuple(gap for gap in gaps if gap.pipelines and gap.rungs)


def _oracle_gap(group: Sequence[tuple[str, str]]) -> OracleGap:
    oracles = sorted(
        (pair for pair in group if pair[0] in ORACLES), key=lambda p: ORACLES.index(p[0])
    )
    return OracleGap(tuple(label for name, label in group if name not in ORACLES), tuple(oracles))
