"""Packs the data of the report's browser: an index per task, and examples in compressed pieces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leporello.analysis.example_trace import STAGES
from leporello.analysis.finished import rows_by_number
from leporello.analysis.funnel import TracedExample, traced_examples
from leporello.core.errors import UserError
from leporello.jobs.manifest import metrics_of_run
from leporello.metrics import Metric
from leporello.report.example_details import SHORT, JobColumns, Piece, job_detail, packed

_PIECE = 100  # examples


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
    piece = Piece(characters)
    for number, traced in enumerate(examples):
        example, details = traced.example, list[dict[str, Any] | None]()
        for job, row, trace in zip(result.jobs, traced.rows, traced.traces, strict=True):
            scores = job.add(row, trace, metrics)
            details.append(job_detail(row, scores, trace) if row else None)
            if number < inputs and row and example and (detail := details[-1]):
                job.add_inputs(detail, row, example)
        piece.add(traced, details)
        result.ids.append(traced.id)
        result.questions.append(example.question[:SHORT] if example else "")
        result.lengths.append(_length(traced))
        if example:
            result.documents.add(example.document.sha256)
        if len(piece.examples) == _PIECE:
            result.pieces.append(piece.packed())
            piece = Piece(characters)
    if piece.examples:
        result.pieces.append(piece.packed())
    result.index = packed(_index(result, [*metrics]))
    result.notes += [note for job in result.jobs for note in job.notes]


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
