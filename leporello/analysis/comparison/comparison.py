"""Pipelines side by side: scores, what they cost, and which differences are more than chance."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from leporello.analysis.comparison.outcomes import Outcomes, oracle_gaps, outcomes
from leporello.analysis.comparison.scores import Draws, Score, compared
from leporello.analysis.comparison.tables import Comparison, PipelineScores, TaskComparison
from leporello.core.coverage import mean_shares
from leporello.core.errors import UserError, did_you_mean
from leporello.engine.results.finished import ExampleStatistics
from leporello.jobs.confidence import selectivity
from leporello.jobs.results import answers_of
from leporello.jobs.signature import metrics_of_run
from leporello.metrics import Metric

_SHOWN = 3  # ids in a message
_POINT = 0.01  # a difference of the mean share cut that is worth telling


def compare(
    runs: Sequence[Path],
    *,
    baseline: str = "",
    tasks: Collection[str] = (),
    common: bool = False,
    draws: Draws = Draws(),  # noqa: B008 -- frozen
) -> Comparison:
    """Holds the pipelines of finished runs side by side; needs neither data nor models.

    Args:
        runs: Directories of the runs; all pipelines of each are compared, task by task.
        baseline: The label of the pipeline that the others are tested against; by default the
            first one of each task.
        tasks: Names of the only tasks to compare; all if empty.
        common: Whether to compare the examples that all pipelines have finished, where they differ.
        draws: Settings of the resampling.

    Raises:
        UserError: There is no such run, task or baseline; or pipelines have finished different
            examples of a task and `common` was not asked for.
    """
    outcomes_of_runs = outcomes(runs)
    names = list(dict.fromkeys(one.job.task for one in outcomes_of_runs))
    for name in tasks:
        if name not in names:
            raise UserError(f"these runs have no task {name!r}{did_you_mean(name, names)}")
    by_task = {
        task: [one for one in outcomes_of_runs if one.job.task == task]
        for task in names
        if not tasks or task in tasks
    }
    comparisons = [_compare_task(own, baseline, common, draws) for own in by_task.values()]
    if baseline and not any(comparison.baseline for comparison in comparisons):
        labels = [entry.label for comparison in comparisons for entry in comparison.entries]
        raise UserError(f"there is no pipeline {baseline!r}{did_you_mean(baseline, labels)}")
    return Comparison(tuple(comparisons), draws)


def _compare_task(
    outcomes: Sequence[Outcomes], baseline: str, common: bool, draws: Draws
) -> TaskComparison:
    labels = _labels(outcomes)
    ids = _ids(outcomes, labels, common)
    first = baseline or labels[0]
    reference = labels.index(first) if first in labels else None
    metrics = metrics_of_run(outcomes[0].job.signature, _shared_metrics(outcomes))
    rows = [[outcome.finished[one] for one in ids] for outcome in outcomes]
    scores = compared(rows, metrics, reference, draws)
    return TaskComparison(
        task=outcomes[0].job.task,
        baseline="" if reference is None else first,
        metrics={name: metric.headline for name, metric in metrics.items()},
        entries=tuple(map(partial(_pipeline_scores, metrics), outcomes, labels, rows, scores)),
        ladders=oracle_gaps(outcomes, labels),
        warnings=tuple(_warnings(outcomes, labels, rows)),
    )


def _labels(outcomes: Sequence[Outcomes]) -> list[str]:
    """Returns the pipelines' names; with their runs' where two have one name."""
    jobs = [outcome.job for outcome in outcomes]
    names = [job.pipeline for job in jobs]
    paths = [f"{job.run.directory.path.name}:" * (names.count(job.pipeline) > 1) for job in jobs]
    return [path + name for path, name in zip(paths, names, strict=True)]


def _ids(outcomes: Sequence[Outcomes], labels: Sequence[str], common: bool) -> list[str]:
    """Returns the examples to compare, in task order.

    Raises:
        UserError: Pipelines have others, and their common ones were not asked for; or there are
            none.
    """
    shared = set(outcomes[0].finished).intersection(*(outcome.finished for outcome in outcomes))
    finished = [(label, outcome.finished) for label, outcome in zip(labels, outcomes, strict=True)]
    more = [(label, ids) for label, ids in finished if len(ids) > len(shared)]
    if more and not common:
        listing = "".join(f"\n  {label}: {_besides(ids, shared)}" for label, ids in more)
        raise UserError(
            f"the pipelines have finished different examples of {outcomes[0].job.task},"
            f" {len(shared):,} in common:{listing}\n"
            "finish the runs, or compare what they have in common with --common"
        )
    if not shared:
        raise UserError(f"the pipelines have no example of {outcomes[0].job.task} in common")
    return [one for one in outcomes[0].finished if one in shared]


def _besides(finished: Iterable[str], shared: Collection[str]) -> str:
    own = [one for one in finished if one not in shared]
    shown = ", ".join(own[:_SHOWN]) + (", …" if len(own) > _SHOWN else "")
    return f"{len(own):,} more ({shown})"


def _shared_metrics(outcomes: Sequence[Outcomes]) -> list[str]:
    known = [outcome.metrics for outcome in outcomes]
    return [name for name in known[0] if all(name in names for names in known)]


def _pipeline_scores(
    metrics: Mapping[str, Metric],
    outcomes: Outcomes,
    label: str,
    rows: Sequence[ExampleStatistics],
    scores: Mapping[str, Score],
) -> PipelineScores:
    prices = [example.dollars for example in rows if example.dollars is not None]
    return PipelineScores(
        label=label,
        run=outcomes.job.run.directory.path,
        pipeline=outcomes.job.pipeline,
        scores=scores,
        examples=len(rows),
        failures=sum(example.failure is not None for example in rows),
        shares=mean_shares([example.coverage for example in rows]),
        seconds=outcomes.seconds,
        input_tokens=sum(example.input_tokens for example in rows),
        output_tokens=sum(example.output_tokens for example in rows),
        dollars=sum(prices) if prices else None,
        sees_gold=outcomes.sees_gold,
        normalised=outcomes.normalised,
        tuned=outcomes.tuned,
        confidence=selectivity([*answers_of(rows, metrics)], sum(row.abstained for row in rows)),
    )


def _unseen(ledgers: Sequence[Mapping[str, int]]) -> float:
    """Returns the mean share of what was selected that the reader did not see."""
    chosen = [ledger for ledger in ledgers if ledger.get("selected")]
    return fmean(ledger["cut"] / ledger["selected"] for ledger in chosen) if chosen else 0.0


def _warnings(
    outcomes: Sequence[Outcomes], labels: Sequence[str], rows: Sequence[Sequence[ExampleStatistics]]
) -> list[str]:
    """Returns what a reader of the table should know first."""
    warnings = []
    if len({str(outcome.job.signature.get("data")) for outcome in outcomes}) > 1:
        warnings.append("the runs were made on different data")
    shares = [_unseen([example.coverage for example in row]) for row in rows]
    if max(shares) - min(shares) > _POINT:
        most, least = shares.index(max(shares)), shares.index(min(shares))
        warnings.append(
            f"truncation differs: the reader did not see {max(shares):.0%} of what"
            f" {labels[most]} selected, and {min(shares):.0%} of what {labels[least]} did"
        )
    for name in _shared_metrics(outcomes):
        signatures = sorted({outcome.signatures.get(name, "") for outcome in outcomes})
        if len(signatures) > 1:
            warnings.append(f"{name} was not computed alike: {' / '.join(signatures)}")
    for label, outcome in zip(labels, outcomes, strict=True):
        warnings += [f"{label} sees the gold"] * outcome.sees_gold
        warnings += [f"{label} was tuned on some of these documents"] * bool(outcome.tuned)
        warnings += [f"{label}'s answers were normalised: no official score"] * outcome.normalised
    unshared = {name for outcome in outcomes for name in outcome.metrics} - {
        *_shared_metrics(outcomes)
    }
    warnings += [f"not every pipeline was scored by {name}: left out" for name in sorted(unshared)]
    return warnings
