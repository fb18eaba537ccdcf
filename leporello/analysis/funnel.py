"""Finds the stages of a pipeline that lose answers, by the traces of all examples of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from leporello.analysis.example_trace import (
    STAGES,
    ExampleTrace,
    containment,
    gold_of,
    trace_example,
)
from leporello.analysis.finished import FinishedJob, FinishedRun, finished_examples
from leporello.core.calls.contracts import asks_question
from leporello.core.calls.memory import memo_key
from leporello.core.errors import UserError
from leporello.core.notes import collect_notes
from leporello.core.protocols import Chunker
from leporello.core.records import Example, Span
from leporello.engine.failures import ExampleError
from leporello.engine.results.finished import FinishedRow
from leporello.engine.selection import document_chunks


@dataclass(frozen=True, slots=True)
class TracedExample:
    """One example with its results and traces by job; None if a job has not finished it."""

    id: str
    example: Example | None  # None if the task's data are missing
    rows: tuple[FinishedRow | None, ...]
    traces: tuple[ExampleTrace | None, ...]


def trace_examples(run: Path | str) -> Iterator[ExampleTrace]:
    """Yields a trace of every finished example, task by task, for all pipelines together.

    Raises UserError if the directory has no run, or its tasks' data have changed.
    """
    for jobs in FinishedRun.at(run).by_task.values():
        for traced in traced_examples(jobs):
            yield from filter(None, traced.traces)


def traced_examples(jobs: Sequence[FinishedJob]) -> Iterator[TracedExample]:
    """Yields the examples of a task that any job has finished.

    The data of the task are streamed once, up to the last finished example. Chunks come from the
    cache, or are computed once for all jobs with the same chunker.
    """
    built: dict[str, Any] = {}
    chunkers = [job.point.stages["chunker"].shared(built) for job in jobs]
    for example, rows in finished_examples(jobs):
        gold = gold_of(example)
        traces = tuple(
            trace_example(job, example, gold, row, partial(_in_chunk, chunker, example))
            if row
            else None
            for job, chunker, row in zip(jobs, chunkers, rows, strict=True)
        )
        yield TracedExample(example.id, example, rows, traces)


def _in_chunk(chunker: Chunker, example: Example, span: Span) -> bool:
    # Most chunkers ignore the question, so one index serves all questions of a document.
    key = ("in chunk", memo_key(chunker), example.question if asks_question(chunker) else "")
    contains: Callable[[Span], bool] = example.document.memo(
        key, lambda: containment(chunk_spans(chunker, example))
    )
    return contains(span)


def chunk_spans(chunker: Chunker, example: Example) -> tuple[Span, ...]:
    """Returns the chunks of an example's document; raises UserError if the chunker fails now."""
    try:
        with collect_notes():  # the run has already stored the notes
            return tuple(chunk.span for chunk in document_chunks(chunker, example))
    except ExampleError as error:
        message = f"the chunker fails, although it succeeded in the run: {error.message}"
        raise UserError(f"example {example.id!r}: {message}") from error


_IDS = 10  # ids of lost examples per stage
_RANKS = 100  # ranks of the recall curve


@dataclass(slots=True)
class FunnelStage:
    """Share of the proofs that one stage kept, over all examples with a proof."""

    stage: str  # name of the stage, one of `STAGES`
    of: int = 0  # number of examples for which the share is known
    # Number of these whose complete proof the stage kept; for `answer`, of correct ones.
    kept: int = 0
    mean: float = 0.0  # mean share that the stage kept, in per cent; for `answer`, the mean score
    lost: int = 0  # number of examples for which this stage was the first to lose text of the proof
    answered: int = 0  # number of the lost examples whose answer is correct nevertheless
    ids: tuple[str, ...] = ()  # ids of the first ten lost examples

    @property
    def share(self) -> float:
        """Share of the examples whose complete proof the stage kept, in per cent."""
        return 100 * self.kept / self.of if self.of else 0.0

    def add(self, trace: ExampleTrace) -> None:
        """Counts an example with a proof."""
        share = trace.kept_share(self.stage)
        value = trace.score if self.stage == "answer" else 100 * share
        if value is not None:
            self.of += 1
            self.kept += share >= 1
            self.mean += (value - self.mean) / self.of
        if trace.lost_at == self.stage:
            self.lost += 1
            self.answered += trace.answered is True
            # A few ids are enough to look at; a run may lose a hundred thousand examples.
            self.ids = (*self.ids, trace.id)[:_IDS]


@dataclass(frozen=True, slots=True)
class Funnel:
    """Losses of one pipeline on one task, stage by stage.

    Attributes:
        examples: Number of finished examples, including failures.
        evidence: Number of these with gold evidence.
        located: Number without evidence whose reference occurs in the document.
        steps: Stages in the order of `STAGES`; empty without examples of either kind.
        recall: Recall of the proof's characters by the first hit, the first two, …, up to a
            hundred hits, in per cent; failed examples count as 0.
    """

    pipeline: str
    task: str
    examples: int
    evidence: int
    located: int
    steps: tuple[FunnelStage, ...]
    recall: tuple[float, ...]

    @property
    def proved(self) -> int:
        """Number of examples with a proof of the answer."""
        return self.evidence + self.located


def funnels(run: Path | str) -> list[Funnel]:
    """Returns a funnel for each pipeline and task of a run; raises as `trace_examples`."""
    counts: defaultdict[tuple[str, str], _JobCounts] = defaultdict(_JobCounts)
    for trace in trace_examples(run):
        counts[trace.pipeline, trace.task].add(trace)
    return [count.funnel(*job) for job, count in counts.items()]


@dataclass
class _JobCounts:
    examples: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    stages: list[FunnelStage] = field(default_factory=lambda: [*map(FunnelStage, STAGES)])
    recall_steps: list[float] = field(default_factory=list)  # recall, by rank

    def add(self, trace: ExampleTrace) -> None:
        # Failed examples count too, as in every score (decision 25).
        self.examples += 1
        if not trace.gold:
            return
        self.kinds[trace.gold] += 1
        for stage in self.stages:
            stage.add(trace)
        previous = 0.0
        for rank, share in trace.gains:
            if rank <= _RANKS:
                self.recall_steps += [0.0] * (rank - len(self.recall_steps))
                # Only increases are stored; their running sum is the mean curve of all examples.
                self.recall_steps[rank - 1] += share - previous
                previous = share

    def funnel(self, pipeline: str, task: str) -> Funnel:
        proved = self.kinds.total()
        sums = accumulate(self.recall_steps)
        return Funnel(
            pipeline=pipeline,
            task=task,
            examples=self.examples,
            evidence=self.kinds["evidence"],
            located=self.kinds["reference"],
            steps=tuple(replace(s, mean=round(s.mean, 4)) for s in self.stages) if proved else (),
            recall=tuple(round(100 * total / proved, 4) for total in sums),
        )
