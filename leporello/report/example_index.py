"""Packs the data of the report's browser: an index per task, and examples in compressed pieces."""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leporello.analysis.example_trace import STAGES, ExampleTrace
from leporello.analysis.finished import rows_by_number
from leporello.analysis.funnel import TracedExample, traced_examples
from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.engine.results.finished import FinishedRow
from leporello.jobs.manifest import metrics_of_run
from leporello.metrics import Metric
from leporello.report.example_details import Detail, ExcerptLimits, JobColumns, job_detail

_SHORT = 80  # characters of questions and predictions in a list
_PIECE = 100  # examples
_ABSENT, _DONE, _FAILED = 0, 1, 2
NOT_LOST, NO_PROOF = -1, -2
"""Values in place of the stage that lost an answer."""


@dataclass
class Packed:
    """The examples of one task."""

    task: str
    jobs: Sequence[JobColumns]  # jobs that ran the examples
    notes: list[str] = field(default_factory=list)  # notes on omitted content, with reasons
    index: str = ""  # packed index for the list of examples
    pieces: list[str] = field(default_factory=list)  # packed pieces of a hundred examples each
    ids: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)  # their beginnings
    lengths: list[int | None] = field(default_factory=list)  # of the documents, in characters
    documents: set[str] = field(default_factory=set)  # SHA-256 of the documents


def packed(value: JSON) -> str:
    """Returns JSON in a form that is safe in HTML: ASCII, compressed, base64."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    # Without a time stamp, so that equal reports have equal bytes.
    return b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode("ascii")


def pack(
    task: str, jobs: Sequence[JobColumns], metrics: Sequence[str], *, characters: int, inputs: int
) -> Packed:
    """Returns a task's examples, with excerpts of documents if the data still exist.

    Each example has this number of characters of excerpts; the first `inputs` examples are shown
    with their exact inputs.
    """
    scorers = metrics_of_run(jobs[0].job.signature, metrics)
    result = Packed(task, jobs)
    try:
        _pack(result, traced_examples([job.job for job in jobs]), scorers, characters, inputs)
    except UserError as error:
        note = f"{task}: shown without its documents and lost answers: {error}"
        result = Packed(task, [replace(job) for job in jobs], [note])
        _pack(result, _without_data(result.jobs), scorers, characters, 0)
    return result


def _without_data(jobs: Sequence[JobColumns]) -> Iterator[TracedExample]:
    """Yields the examples that any job has finished, by their number in the task."""
    for _, rows in rows_by_number([job.job.files for job in jobs]):
        # Runs of different data may have several examples of one number.
        for example_id in dict.fromkeys(row.id for row in rows if row):
            of_example = tuple(row if row and row.id == example_id else None for row in rows)
            yield TracedExample(example_id, None, of_example, (None,) * len(jobs))


def _pack(
    result: Packed,
    examples: Iterable[TracedExample],
    metrics: Mapping[str, Metric],
    characters: int,
    inputs: int,
) -> None:
    """Packs the examples in one pass; the first `inputs` of them have exact inputs."""
    detail = Detail(characters)
    for number, example in enumerate(examples):
        cells = [*zip(result.jobs, example.rows, example.traces, strict=True)]
        details = [_add(*cell, metrics, detail.limits) for cell in cells]
        detail.add(example, details)
        for (job, row, _), shown in zip(cells, details, strict=True):
            if number < inputs and row and shown and example.example:
                job.add_inputs(shown, row, example.example)
        result.ids.append(example.id)
        result.questions.append(example.example.question[:_SHORT] if example.example else "")
        result.lengths.append(_length(example))
        if example.example:
            result.documents.add(example.example.document.sha256)
        if len(detail.examples) == _PIECE:
            result.pieces.append(packed(detail.take_piece()))
    if detail.examples:
        result.pieces.append(packed(detail.take_piece()))
    result.index = packed(_index(result, [*metrics]))
    result.notes += [note for job in result.jobs for note in job.notes]


def _add(
    job: JobColumns,
    row: FinishedRow | None,
    trace: ExampleTrace | None,
    metrics: Mapping[str, Metric],
    limits: ExcerptLimits,
) -> dict[str, Any] | None:
    """Adds a value to each column of a job; returns the details of its results."""
    # Without the proof, a reader may still know the answer or find it elsewhere.
    lost_at = trace.lost_at if trace and not trace.answered else ""
    statistics = row.statistics.statistics if row else {}
    scores = {
        name: round(metric.score(of_metric), 4)
        for name, metric in metrics.items()
        if (of_metric := statistics.get(name)) is not None
    }
    for name in metrics:
        job.scores.setdefault(name, []).append(scores.get(name))
    is_answered = row is not None and not row.statistics.abstained
    job.confidences.append(row.statistics.confidence if row and is_answered else None)
    prediction = row.prediction if row else None
    job.predictions.append(prediction["prediction"][:_SHORT] if prediction else "")
    job.states.append(_ABSENT if row is None else _DONE if prediction else _FAILED)
    has_proof = trace is not None and trace.gold
    job.lost.append(STAGES.index(lost_at) if lost_at else NOT_LOST if has_proof else NO_PROOF)
    if trace:
        job.traces[trace.id] = trace
    return job_detail(row, scores, lost_at, limits) if row else None


def _index(result: Packed, metrics: list[str]) -> dict[str, Any]:
    jobs = result.jobs
    return {
        "task": result.task,
        "jobs": [
            {
                "label": job.label,
                "name": job.name,
                "run": str(job.job.run.directory.path),
                "pipeline": job.job.pipeline,
            }
            for job in jobs
        ],
        "metrics": metrics,
        "stages": [*STAGES],
        "piece": _PIECE,
        "ids": result.ids,
        "questions": result.questions,
        "predictions": [job.predictions for job in jobs],
        "states": [job.states for job in jobs],
        "lost": [job.lost for job in jobs],
        "scores": [[job.scores.get(name, []) for name in metrics] for job in jobs],
    }


def _length(example: TracedExample) -> int | None:
    if example.example:
        return len(example.example.document.text)
    lengths = (
        row.statistics.coverage["document"] for row in example.rows if row and row.prediction
    )
    return next(lengths, None)
