"""Results of jobs as columns with a value per example, and the exact inputs of readers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello.analysis.example_trace import ExampleTrace
from leporello.analysis.finished import FinishedJob, rows_by_number
from leporello.analysis.funnel import TracedExample
from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Example
from leporello.engine.results.serialization import read_from_row


@dataclass
class JobColumns:
    """One pipeline on one task of a run; its columns have a value per example of the report."""

    job: FinishedJob
    label: str
    name: str  # short label in the report: `#1` for a point of a sweep
    scores: dict[str, list[float | None]] = field(default_factory=dict, init=False)  # by metric
    confidences: list[float | None] = field(default_factory=list, init=False)
    # The index in `STAGES` of the stage that lost the answer, `NOT_LOST` or `NO_PROOF`.
    lost: list[int] = field(default_factory=list, init=False)
    predictions: list[str] = field(default_factory=list, init=False)  # their beginnings
    states: list[int] = field(default_factory=list, init=False)
    traces: dict[str, ExampleTrace] = field(default_factory=dict, init=False)  # by example's id


def without_data(jobs: Sequence[JobColumns]) -> Iterator[TracedExample]:
    """Yields the examples that any job has finished, by their number in the task."""
    for _, rows in rows_by_number([job.job.files for job in jobs]):
        # Runs of different data may have several examples of one number.
        for example_id in dict.fromkeys(row.id for row in rows if row):
            of_example = tuple(row if row and row.id == example_id else None for row in rows)
            yield TracedExample(example_id, None, of_example, (None,) * len(jobs))


_NO = "exact inputs are left out"
_MOST = 20_000  # characters of one input
_ALL = 40_000  # characters of all inputs of an example


@dataclass
class Prompts:
    """Renders inputs; after the first failure of a job's reader, it skips that job."""

    notes: list[str] = field(default_factory=list)  # reasons why inputs are left out, one per job
    _stages: dict[str, Pipeline | None] = field(default_factory=dict)  # by the job's label

    def render(
        self, job: JobColumns, calls: Sequence[Mapping[str, Any]], example: Example
    ) -> list[str | None]:
        """Returns the input of each call, shortened in the middle if it is long; or None."""
        if job.label not in self._stages:
            self._stages[job.label] = self._built(job)
        prompts: list[str | None] = []
        remaining = _ALL
        for call in calls:
            stages = self._stages[job.label] if remaining > 0 else None
            prompt = self._rendered(job, stages, call, example) if stages else None
            remaining -= len(prompt or "")
            prompts.append(prompt)
        return prompts

    def _built(self, job: JobColumns) -> Pipeline | None:
        try:
            stages, changed = job.job.point.build(), job.job.changed_files()
        except UserError as error:
            self._leave_out(job, str(error))
            return None
        if changed:
            self._leave_out(job, "a file of its stages has changed since the run")
            return None
        return stages

    def _rendered(
        self, job: JobColumns, stages: Pipeline, call: Mapping[str, Any], example: Example
    ) -> str | None:
        reader = stages.reader_of(call["role"])
        if not isinstance(reader, RendersPrompt):
            return None  # it reads the passages without a prompt
        try:
            text = reader.render(read_from_row(call, example.document))
        except Exception as error:  # a plug-in, or a model that is not on this machine
            self._leave_out(job, f"{type(error).__name__}: {error}")
            self._stages[job.label] = None
            return None
        return _shortened(text)

    def _leave_out(self, job: JobColumns, reason: str) -> None:
        self.notes.append(f"{job.label} on {job.job.task}: {_NO}: {reason}")


def _shortened(text: str) -> str:
    if len(text) <= _MOST:
        return text
    half = _MOST // 2
    return f"{text[:half]}\n[… {len(text) - _MOST:,} characters left out …]\n{text[-half:]}"
