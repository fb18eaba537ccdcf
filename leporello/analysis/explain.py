"""Explains one example of a run: its chunks, hits, reads, truncation, scores and losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.analysis.example_trace import ExampleTrace, containment, gold_of, trace_example
from leporello.analysis.finished import FinishedJob, FinishedRun, check_document
from leporello.analysis.funnel import chunk_spans
from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.passages import Passage
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Example, Prediction, Read, Span
from leporello.engine.results.finished import empty_prediction, prediction_from_row
from leporello.engine.results.serialization import read_from_row
from leporello.text.outline import cited


@dataclass(frozen=True, slots=True)
class ReadInput:
    """One read of a reader."""

    round: int  # round of the combiner, starting at 0
    prompt: str  # exact prompt of the model; without one, instruction, passages and question
    text: str = ""
    score: float | None = None  # higher is more confident; None if the reader returns none
    scores: tuple[float, ...] = ()
    cut: int = 0  # number of characters of the input that the model did not see
    error: str = ""  # error of a failed read; otherwise empty
    span: Span | None = None  # place from which the reader copied the answer
    place: str = ""  # place of that span, such as `report.pdf p. 14`.
    reasoning: str = ""  # reasoning that the model wrote before the answer
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one example of a run.

    Attributes:
        example: Example with references and evidence.
        prediction: Prediction; empty if the example failed.
        failure: Row of failures.jsonl with the traceback; None if the example succeeded.
        chunks: Spans of the chunks; empty if chunking failed.
        inputs: Reads in order.
        scores: Scores of this example, by metric.
        fate: Trace of the evidence through the stages, with the stage that lost it.
        passages: Passages by the rank of their hit, starting at 0, with their sources.
    """

    pipeline: str
    task: str
    example: Example
    prediction: Prediction
    failure: Mapping[str, Any] | None
    chunks: tuple[Span, ...]
    inputs: tuple[ReadInput, ...]
    scores: Mapping[str, float]
    notes: tuple[str, ...]
    fate: ExampleTrace
    passages: Mapping[int, Passage] = field(default_factory=dict)


def explain(run: Path | str, example_id: str) -> list[Explanation]:
    """Returns explanations of an example, for every pipeline and task with an example of that id.

    Raises UserError if the directory has no run, or the run has no such example.
    """
    examples = FinishedRun.at(run).with_example(example_id)
    explanations = [explanation for pair in examples if (explanation := _explained(*pair))]
    if not explanations:
        raise UserError(f"{run}: example {example_id!r} is not finished yet")
    return explanations


def _explained(job: FinishedJob, example: Example) -> Explanation | None:
    row = job.files.row(example.id)
    if row is None:
        return None
    stages, changed = job.point.build(), job.changed_files()
    check_document(job.task, example, row)
    failure, statistics = row.failure, row.statistics
    prediction = (
        prediction_from_row(row.prediction) if row.prediction else empty_prediction(example)
    )
    by_metric = {} if failure else statistics.statistics
    stage = failure["stage"] if failure else ""
    chunks = () if stage in ("task", "chunker") else chunk_spans(stages.chunker, example)
    changes = (
        f"{file} has changed since the run: the parts of prompts are shown, not exact prompts"
        for file in changed
    )
    return Explanation(
        pipeline=job.pipeline,
        task=job.task,
        example=example,
        prediction=prediction,
        failure={**failure, "traceback": row.traceback} if failure else None,
        chunks=chunks,
        inputs=tuple(_input(stages, example, call, not changed) for call in row.calls),
        scores={n: job.metrics[n].score(s) for n, s in by_metric.items() if s is not None},
        notes=(*statistics.notes, *statistics.faults.values(), *changes),
        fate=trace_example(job, example, gold_of(example), row, containment(chunks)),
        passages=_passages(job, example, prediction),
    )


def _passages(job: FinishedJob, example: Example, prediction: Prediction) -> Mapping[int, Passage]:
    """Returns the passages of hits by rank, including their sources in the document."""
    if not prediction.passages:
        return {}
    # Results lack the sources of passages: the root of a summary tree would bring the complete
    # tree into every row. The store has them (decision 46).
    stored = job.files.passages(example.document)
    by_key = {(p.kind, p.reading, p.spans): p for p in stored if isinstance(p, Passage)}
    keys = ((r, (p.kind, p.text, p.spans)) for r, p in prediction.passages.items())
    return {rank: by_key[key] for rank, key in keys if key in by_key}


def _input(
    stages: Pipeline, example: Example, row: Mapping[str, Any], can_render: bool
) -> ReadInput:
    output = row["output"]
    prompt = exact_prompt(stages, example, row) if can_render else None
    span = Span(*output["span"]) if "span" in output else None
    return ReadInput(
        round=row["round"],
        prompt=_parts(read_from_row(row, example.document)) if prompt is None else prompt,
        span=span,
        place=cited(example.document, span) if span else "",
        **{name: output[name] for name in _OUTPUT if output.get(name) is not None},
    )


def exact_prompt(stages: Pipeline, example: Example, row: Mapping[str, Any]) -> str | None:
    """Returns the prompt of a read; None if the reader reads passages without a prompt."""
    reader, read = stages.reader_of(row["role"]), read_from_row(row, example.document)
    return reader.render(read) if isinstance(reader, RendersPrompt) else None


# Fields of an output, of which a failed read has only the error.
_OUTPUT = ("text", "score", "scores", "cut", "error", "reasoning", "reasoning_tokens")


def _parts(read: Read) -> str:
    passages = [p if isinstance(p, str) else p.text for p in read.passages]
    return "\n\n".join(part for part in (read.instruction, *passages, read.question) if part)
