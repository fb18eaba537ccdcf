"""Explains one example of a run: its chunks, hits, reads, truncation, scores and losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.analysis.finished import FinishedJob, FinishedRun, check_document
from leporello.analysis.funnel.collect import answer_score
from leporello.analysis.funnel.example_trace import ChunkCover, ExampleTrace, gold_of, trace_example
from leporello.config import Pipeline, PipelineSpec
from leporello.core.calls.contracts import asks_question
from leporello.core.calls.stage_calls import divide
from leporello.core.errors import UserError
from leporello.core.notes import collect_notes
from leporello.core.passages import Passage
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Example, Prediction, Read, Span
from leporello.engine.results.serialization import (
    empty_prediction,
    prediction_from_row,
    read_from_row,
)
from leporello.executors.shard_passages import passages_of
from leporello.jobs.files import ExampleFiles
from leporello.jobs.signature import named_files
from leporello.text.outline import cited


@dataclass(frozen=True, slots=True)
class ReadInput:
    """One read of a reader.

    Attributes:
        round: Round of the combiner, starting at 0.
        prompt: Exact prompt of the model; without one, instruction, passages and question.
        text: Text of the output.
        score: Score of the output, higher is more confident; None if the reader returns none.
        scores: Scores of the choices.
        cut: Number of characters of the input that the model did not see.
        error: Error of a failed read; otherwise empty.
        span: Span of the document from which the reader copied the answer, if it did.
        place: Place of that span, such as `report.pdf p. 14`.
        reasoning: Reasoning that the model wrote before the answer.
        reasoning_tokens: Number of tokens of the reasoning.
    """

    round: int
    prompt: str
    text: str
    score: float | None
    scores: tuple[float, ...]
    cut: int
    error: str
    span: Span | None = None
    place: str = ""
    reasoning: str = ""
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything about one example of a run.

    Attributes:
        pipeline: Name of the pipeline.
        task: Name of the task.
        example: Example with references and evidence.
        prediction: Prediction; empty if the example failed.
        failure: Row of failures.jsonl with the traceback; None if the example succeeded.
        chunks: Spans of the chunks; empty if chunking failed.
        inputs: Reads in order.
        scores: Scores of this example, by metric.
        notes: Notes of its stages.
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


def explain(run: Path, example_id: str) -> list[Explanation]:
    """Returns explanations of an example, for every pipeline and task with an example of that id.

    Raises:
        UserError: The directory has no run, or the run has no such example.
    """
    examples = FinishedRun.at(run).with_example(example_id)
    explanations = [_ExampleOfJob.of(job, example).explain() for job, example in examples]
    if finished := [explanation for explanation in explanations if explanation is not None]:
        return finished
    raise UserError(f"{run}: example {example_id!r} is not finished yet")


@dataclass(frozen=True)
class _ExampleOfJob:
    job: FinishedJob
    example: Example
    stages: Pipeline
    changed: tuple[str, ...]

    @classmethod
    def of(cls, job: FinishedJob, example: Example) -> _ExampleOfJob:
        return cls(job, example, job.point.build(), _notes_on_changes(job.point, job.signature))

    def explain(self) -> Explanation | None:
        """Returns the explanation, or None if the example is not finished."""
        row = self.job.files.row(self.example.id)
        if row is None:
            return None
        finished, metrics = ExampleFiles.from_store(row), self.job.metrics
        check_document(self.job.task, self.example, finished)
        failure, statistics = finished.failure, finished.statistics
        prediction = empty_prediction(self.example)
        if finished.prediction:
            prediction = prediction_from_row(finished.prediction)
        by_metric = {} if failure else statistics.statistics
        stage = failure["stage"] if failure else ""
        chunks = () if stage in ("task", "chunker") else self._chunks()
        names, gold = (self.job.pipeline, self.job.task), gold_of(self.example)
        score = answer_score(finished, metrics)
        fate = trace_example(
            names, self.example, gold, ChunkCover.of(chunks), finished, score=score
        )
        return Explanation(
            *names,
            example=self.example,
            prediction=prediction,
            failure={**failure, "traceback": row.traceback.decode()} if failure else None,
            chunks=chunks,
            inputs=tuple(map(self._input, finished.calls)),
            scores={n: metrics[n].score(s) for n, s in by_metric.items() if s is not None},
            notes=(*statistics.notes, *statistics.faults.values(), *self.changed),
            fate=fate,
            passages=self._passages(prediction),
        )

    def _passages(self, prediction: Prediction) -> Mapping[int, Passage]:
        """Returns the passages of hits by rank, including their sources in the document."""
        if not prediction.passages:
            return {}
        # Results lack the sources of passages: the root of a summary tree would bring the complete
        # tree into every row. The store has them (decision 46).
        stored = passages_of(self.job.files.stores, self.example.document)
        by_key = {(p.kind, p.reading, p.spans): p for p in stored if isinstance(p, Passage)}
        keys = ((r, (p.kind, p.text, p.spans)) for r, p in prediction.passages.items())
        return {rank: by_key[key] for rank, key in keys if key in by_key}

    def _chunks(self) -> tuple[Span, ...]:
        question = self.example.question if asks_question(self.stages.chunker) else ""
        with collect_notes():  # the run has already stored the notes
            chunks = divide(self.stages.chunker, self.example.document, question)
        return tuple(chunk.span for chunk in chunks)

    def _input(self, row: Mapping[str, Any]) -> ReadInput:
        read = read_from_row(row, self.example.document)
        output = row["output"]
        reader = self.stages.reader_of(read.role)
        can_render = isinstance(reader, RendersPrompt) and not self.changed
        prompt = reader.render(read) if can_render else _parts(read)
        span = Span(*output["span"]) if "span" in output else None
        if "error" in output:
            return ReadInput(row["round"], prompt, "", None, (), 0, output["error"])
        return ReadInput(
            round=row["round"],
            prompt=prompt,
            text=output["text"],
            score=output["score"],
            scores=tuple(output["scores"]),
            cut=output["cut"],
            error="",
            span=span,
            place=cited(self.example.document, span) if span else "",
            reasoning=output.get("reasoning") or "",
            reasoning_tokens=output.get("reasoning_tokens") or 0,
        )


def _notes_on_changes(pipeline: PipelineSpec, signature: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns notes on files of stages that changed since the run, which may change prompts."""
    current, recorded = named_files(pipeline), signature.get("files", {})
    return tuple(
        f"{file} has changed since the run: the parts of prompts are shown, not exact prompts"
        for file in dict.fromkeys([*current, *recorded])
        if current.get(file) != recorded.get(file)
    )


def _parts(read: Read) -> str:
    passages = [p if isinstance(p, str) else p.text for p in read.passages]
    return "\n\n".join(part for part in (read.instruction, *passages, read.question) if part)
