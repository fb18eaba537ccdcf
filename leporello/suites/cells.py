"""Cells: what runs say of one pipeline on one task of a suite."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.analysis.comparison.outcomes import derived
from leporello.analysis.comparison.scores import Draws, scores_of
from leporello.config.suites import Suite
from leporello.core.errors import UserError
from leporello.jobs.directory import RunDirectory, runs_in
from leporello.jobs.files import JobFiles
from leporello.jobs.signature import metrics_of_run
from leporello.metrics.statistics import StatisticsTable

# As many as an interval's first digits need: a table is to be there at once.
_DRAWS = Draws(samples=1_000)


@dataclass(frozen=True, slots=True)
class Cell:
    """One pipeline on one task, in one run.

    Attributes:
        run: Directory of the run.
        pipeline: Name of the pipeline.
        task: Name of the task.
        split: Name of the split; empty if the task has none.
        examples: Number of examples finished, failed ones included.
        expected: Number of examples that the run has; None if it is not known.
        failures: Number of examples that are scored as empty predictions.
        scores: Scores by name, 0 to 100.
        intervals: 95 % intervals (low, high) by score, for those that can be resampled.
        normalised: Whether answers were brought into the form that metrics read.
        sees_gold: Whether a stage had the references or the evidence in view.
    """

    run: Path
    pipeline: str
    task: str
    split: str
    examples: int
    expected: int | None
    failures: int
    scores: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    normalised: bool
    sees_gold: bool

    @property
    def name(self) -> str:
        """As a person would say it."""
        return f"{self.pipeline} on {self.task} in {self.run}"

    @property
    def partial(self) -> bool:
        """Whether the run has not come to its end."""
        return self.expected is not None and self.examples < self.expected


def cells_of(runs: Sequence[Path], suite: Suite) -> list[Cell]:
    """Returns what runs say of a suite's tasks.

    Args:
        runs: Directories of runs, or folders in which such lie.
        suite: The suite; other tasks are passed over.

    Raises:
        UserError: No run lies there, or none of these tasks was run.
    """
    directories = dict.fromkeys(path.resolve() for run in runs for path in runs_in(run))
    cells = [cell for path in directories for cell in _of_run(path, suite)]
    if runs and not cells:
        names = ", ".join(map(str, runs))
        tasks = dict.fromkeys(task.partition("@")[0] for task in suite.tasks)
        raise UserError(f"{names}: nothing of {', '.join(tasks)} is finished there")
    return cells


def _of_run(path: Path, suite: Suite) -> Iterator[Cell]:
    directory = RunDirectory.of_run(path)
    expected = directory.expected()
    for job, signature in directory.jobs().items():
        if suite.has(job[1]):
            cell = _cell(directory, job, signature, expected[job])
            if cell.examples:
                yield cell


def _cell(
    run: RunDirectory, job: tuple[str, str], signature: Mapping[str, Any], expected: int | None
) -> Cell:
    tables: dict[str, StatisticsTable] = defaultdict(StatisticsTable)
    examples = failures = 0
    for example in JobFiles(run, *job).statistics():
        examples, failures = examples + 1, failures + (example.failure is not None)
        for name, statistics in example.statistics.items():
            table = tables[name]
            if statistics is not None:
                table.append(statistics)
    metrics = metrics_of_run(signature, [*tables])
    found = {n: scores_of(metrics[n], [tables[n]], None, _DRAWS)[0] for n in metrics}
    scores = {name: value for score in found.values() for name, value in score.others.items()}
    ends = {metrics[n].headline: score.interval for n, score in found.items() if score.interval}
    for name in scores:  # of the Shuffle Test, which has an interval of its own for each block size
        if name.startswith("accuracy["):
            size = name.removeprefix("accuracy")
            ends[name] = (scores[f"low{size}"], scores[f"high{size}"])
    given = signature["task"]  # of 0.2, a task said whether answers were normalised
    merged = derived(run, *job, "metrics.json")
    return Cell(
        run.path,
        *job,
        split=str(given.get("split", "")),
        examples=examples,
        expected=expected,
        failures=failures,
        scores=scores,
        intervals=ends,
        normalised=bool(merged.get("normalised", given.get("normalised"))),
        sees_gold=bool(merged.get("sees_gold")),
    )
