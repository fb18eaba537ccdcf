"""Compares finished pipelines: scores, costs and significant differences."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from leporello.analysis.comparison.scores import Draws, Score, compared, owners_of
from leporello.analysis.comparison.tables import (
    Comparison,
    OracleGap,
    PipelineScores,
    TaskComparison,
)
from leporello.analysis.finished import FinishedJob, FinishedRun
from leporello.core.coverage import mean_shares
from leporello.core.errors import UserError, check_list, did_you_mean, few
from leporello.engine.results.finished import ExampleStatistics
from leporello.jobs.manifest import metrics_of_run
from leporello.jobs.results import answers_of, selectivity
from leporello.metrics import Metric

_STAGES = ("chunker", "reader", "combiner")  # stages that pipelines of an oracle gap share
_POINT = 0.01  # smallest difference of truncated shares that triggers a warning

# Classes of retrievers, best first: oracles, all chunks, then random and first chunks.
_ORACLES = ("Oracle", "OracleAnswer", "All", "Random", "First")


def compare(
    runs: Sequence[Path | str],
    *,
    baseline: str = "",
    tasks: Collection[str] = (),
    common: bool = False,
    draws: Draws = Draws(),  # noqa: B008 -- frozen
) -> Comparison:
    """Compares the pipelines of finished runs; needs neither data nor models.

    Args:
        runs: Directories of the runs; all their pipelines are compared, task by task.
        baseline: Label of the pipeline that the others are tested against; by default the first
            pipeline of each task.
        tasks: Names of the tasks to compare; all if empty.
        common: Whether to compare only the examples that all pipelines have finished.
        draws: Settings of the resampling.

    Raises:
        UserError: A run, task or baseline does not exist; or pipelines have finished different
            examples of a task, and `common` is not set.
    """
    check_list("tasks", tasks)
    all_jobs = _all_jobs(runs)
    names = list(dict.fromkeys(job.task for job in all_jobs))
    for name in tasks:
        if name not in names:
            raise UserError(f"these runs have no task {name!r}{did_you_mean(name, names)}")
    by_task = {
        task: [job for job in all_jobs if job.task == task]
        for task in names
        if not tasks or task in tasks
    }
    comparisons = [_compare_task(of_task, baseline, common, draws) for of_task in by_task.values()]
    if baseline and not any(comparison.baseline for comparison in comparisons):
        labels = [entry.label for comparison in comparisons for entry in comparison.entries]
        raise UserError(f"there is no pipeline {baseline!r}{did_you_mean(baseline, labels)}")
    return Comparison(tuple(comparisons), draws)


def _compare_task(
    jobs: Sequence[FinishedJob], baseline: str, common: bool, draws: Draws
) -> TaskComparison:
    labels = _labels(jobs)
    ids = _ids(jobs, labels, common)
    first = baseline or labels[0]
    reference = labels.index(first) if first in labels else None
    metrics = metrics_of_run(jobs[0].signature, _shared_metrics(jobs))
    rows = [[job.statistics[id_] for id_ in ids] for job in jobs]
    scores = compared(rows, metrics, reference, draws)
    warnings = _warnings(jobs, labels, rows)
    if draws.by_document and len({*owners_of(rows, range(len(ids)))}) == 1:
        warnings.append("all examples are of one document, so scores have no interval")
    return TaskComparison(
        task=jobs[0].task,
        baseline="" if reference is None else first,
        metrics={name: metric.headline for name, metric in metrics.items()},
        entries=tuple(map(partial(_pipeline_scores, metrics), jobs, labels, rows, scores)),
        ladders=_oracle_gaps(jobs, labels),
        warnings=tuple(warnings),
    )


def _labels(jobs: Sequence[FinishedJob]) -> list[str]:
    """Returns the pipelines' names, with the run's name if two pipelines have the same name."""
    names = [job.pipeline for job in jobs]
    paths = [f"{job.run.directory.path.name}:" * (names.count(job.pipeline) > 1) for job in jobs]
    return [path + name for path, name in zip(paths, names, strict=True)]


def _ids(jobs: Sequence[FinishedJob], labels: Sequence[str], common: bool) -> list[str]:
    common_ids = set(jobs[0].statistics).intersection(*(job.statistics for job in jobs))
    finished = [(label, job.statistics) for label, job in zip(labels, jobs, strict=True)]
    larger = [(label, ids) for label, ids in finished if len(ids) > len(common_ids)]
    if larger and not common:
        listing = "".join(f"\n  {label}: {_surplus(ids, common_ids)}" for label, ids in larger)
        raise UserError(
            f"the pipelines have finished different examples of {jobs[0].task},"
            f" {len(common_ids):,} in common:{listing}\n"
            "finish the runs, or compare only the common examples with --common"
        )
    if not common_ids:
        raise UserError(f"the pipelines have no example of {jobs[0].task} in common")
    return [id_ for id_ in jobs[0].statistics if id_ in common_ids]


def _surplus(finished: Iterable[str], common_ids: Collection[str]) -> str:
    surplus = [id_ for id_ in finished if id_ not in common_ids]
    return f"{len(surplus):,} more ({few(surplus)})"


def _shared_metrics(jobs: Sequence[FinishedJob]) -> list[str]:
    first, *others = [job.scored_by for job in jobs]
    if not (shared := [name for name in first if all(name in names for names in others)]):
        listing = "".join(f"\n  {job.pipeline}: {', '.join(job.scored_by)}" for job in jobs)
        raise UserError(
            f"the pipelines have no metric of {jobs[0].task} in common, so nothing can be"
            f" compared:{listing}\nrun them again with the same metrics"
        )
    return shared


def _pipeline_scores(
    metrics: Mapping[str, Metric],
    job: FinishedJob,
    label: str,
    rows: Sequence[ExampleStatistics],
    scores: Mapping[str, Score],
) -> PipelineScores:
    prices = [example.dollars for example in rows if example.dollars is not None]
    return PipelineScores(
        label=label,
        run=job.run.directory.path,
        pipeline=job.pipeline,
        reader=job.reader,
        scores=scores,
        examples=len(rows),
        failures=sum(example.failure is not None for example in rows),
        shares=mean_shares([example.coverage for example in rows]),
        seconds=_seconds(job),
        input_tokens=sum(example.input_tokens for example in rows),
        output_tokens=sum(example.output_tokens for example in rows),
        dollars=sum(prices) if prices else None,
        sees_gold=job.sees_gold,
        normalised=job.normalised,
        tuned=job.tuned,
        confidence=selectivity([*answers_of(rows, metrics)], sum(row.abstained for row in rows)),
    )


def _seconds(job: FinishedJob) -> float | None:
    timings = job.files.read("timings.json")
    if not timings.get("examples"):
        return None
    spent = timings["selecting"]["seconds"] + timings["reading"]["seconds"]
    return float(spent / timings["examples"])


def _unseen(ledgers: Sequence[Mapping[str, int]]) -> float:
    """Returns the mean share of the selected text that the reader did not see."""
    chosen = [ledger for ledger in ledgers if ledger.get("selected")]
    return fmean(ledger["cut"] / ledger["selected"] for ledger in chosen) if chosen else 0.0


def _warnings(
    jobs: Sequence[FinishedJob], labels: Sequence[str], rows: Sequence[Sequence[ExampleStatistics]]
) -> list[str]:
    warnings = []
    if len({str(job.signature.get("data")) for job in jobs}) > 1:
        warnings.append("the runs were made on different data")
    shares = [_unseen([example.coverage for example in row]) for row in rows]
    if max(shares) - min(shares) > _POINT:
        highest, lowest = shares.index(max(shares)), shares.index(min(shares))
        warnings.append(
            f"truncation differs: the reader did not see {max(shares):.0%} of the text that"
            f" {labels[highest]} selected, but {min(shares):.0%} for {labels[lowest]}"
        )
    for name in _shared_metrics(jobs):
        signatures = sorted({job.merged.get("signatures", {}).get(name, "") for job in jobs})
        if len(signatures) > 1:
            warnings.append(f"{name} was not computed alike: {' / '.join(signatures)}")
    for label, job in zip(labels, jobs, strict=True):
        warnings += [f"{label} sees the gold"] * job.sees_gold
        warnings += [f"{label} was tuned on some of these documents"] * bool(job.tuned)
        warnings += [f"{label}'s answers were normalised: no official score"] * job.normalised
    unshared = {name for job in jobs for name in job.scored_by} - {*_shared_metrics(jobs)}
    warnings += [f"not every pipeline was scored by {name}: left out" for name in sorted(unshared)]
    return warnings


def _all_jobs(runs: Sequence[Path | str]) -> list[FinishedJob]:
    check_list("runs", runs)
    directories = [Path(run).resolve() for run in runs]
    if repeated := [run for run in directories if directories.count(run) > 1]:
        raise UserError(f"{repeated[0]}: the run is named twice")
    if not directories:
        raise UserError("runs is empty: name at least one run")
    all_jobs = []
    for run in runs:
        jobs = [job for job in FinishedRun.at(run).jobs if job.statistics]
        if not jobs:
            raise UserError(f"{run}: this run has no finished examples yet")
        all_jobs += jobs
    return all_jobs


def _oracle_gaps(jobs: Sequence[FinishedJob], labels: Sequence[str]) -> tuple[OracleGap, ...]:
    """Returns the oracle gaps among pipelines on one task that include a real retriever."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for job, label in zip(jobs, labels, strict=True):
        stages = job.signature["pipeline"]
        same = json.dumps([stages[key] for key in _STAGES], sort_keys=True)
        groups.setdefault(same, []).append((str(stages["retriever"]["class"]), label))
    gaps = [_oracle_gap(group) for group in groups.values()]
    return tuple(gap for gap in gaps if gap.pipelines and gap.rungs)


def _oracle_gap(group: Sequence[tuple[str, str]]) -> OracleGap:
    oracles = sorted(
        (pair for pair in group if pair[0] in _ORACLES), key=lambda p: _ORACLES.index(p[0])
    )
    return OracleGap(tuple(label for name, label in group if name not in _ORACLES), tuple(oracles))
