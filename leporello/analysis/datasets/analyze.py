"""Analyses of a task by its name, and of the predictions of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.analysis.datasets.statistics import (
    FormatDiscrepancy,
    TaskAnalysis,
    analyze_examples,
    analyze_predictions,
)
from leporello.analysis.finished import FinishedExamples, FinishedJob, FinishedRun
from leporello.config import load_config
from leporello.core.calls.answers import as_text
from leporello.core.records import Example
from leporello.engine.task_examples import examples_of

# The references of these tasks are labels, so the paper locates the hypothesis of the question.
_SPREAD_OF_QUESTION = ("contract_nli",)


@dataclass(frozen=True, slots=True)
class JobDiscrepancy:
    """Form of the answers of one pipeline on one task."""

    pipeline: str
    task: str
    discrepancy: FormatDiscrepancy


def analyze_task(task: str, config: Sequence[Path] = (), split: str = "") -> TaskAnalysis:
    """Returns statistics of a task's data.

    Args:
        task: Name of the task.
        config: Config files, merged over the built-in one.
        split: Name of a split that replaces the task's split.

    Raises:
        UserError: The task does not exist, or its data cannot be read.
    """
    [spec] = load_config(config).tasks_named([task])
    source = (spec.with_split(split) if split else spec).spec.build()
    of_question = task.rpartition("/")[2] in _SPREAD_OF_QUESTION
    return analyze_examples(
        examples_of(source, task), spread_of="question" if of_question else "references"
    )


def analyze_run(run: Path) -> list[JobDiscrepancy]:
    """Compares the form of answers and references, for each job of a run.

    Raises:
        UserError: The run's files or data cannot be read.
    """
    return [
        JobDiscrepancy(
            job.pipeline,
            job.task,
            analyze_predictions(_answers(job), job.metrics),
        )
        for job in FinishedRun.at(run).jobs
    ]


def _answers(job: FinishedJob) -> Iterator[tuple[Example, str | None]]:
    """Yields each finished example with its raw answer; None if it failed."""
    finished = FinishedExamples(job.files)
    for example in job.examples():
        if finished.next is None:  # --limit left out the others
            return
        if files := finished.take(example.id):
            yield example, as_text(files.prediction["raw"]) if files.prediction else None
    finished.check_end(job.name)
