"""Reads a run and its tasks' data together in one pass, and traces every example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from leporello.analysis.finished import (
    FinishedExamples,
    FinishedJob,
    FinishedRun,
    check_document,
)
from leporello.analysis.funnel.example_trace import (
    ChunkCover,
    ExampleTrace,
    Gold,
    gold_of,
    trace_example,
)
from leporello.cache.store import Cache
from leporello.config.specs import StageFactory
from leporello.core.calls.contracts import asks_question
from leporello.core.calls.memory import memo_key
from leporello.core.errors import UserError
from leporello.core.notes import collect_notes
from leporello.core.protocols import Chunker
from leporello.core.records import Example
from leporello.engine.failures import ExampleError
from leporello.engine.selection import by_document, document_chunks
from leporello.jobs.files import ExampleFiles
from leporello.metrics import Metric, judging_metric
from leporello.models.locate import cache_directory


def trace_examples(run: Path) -> Iterator[ExampleTrace]:
    """Yields a trace of every finished example, task by task, for all pipelines together.

    The data of a task are streamed once, up to the last finished example. Chunks come from the
    cache, or are computed once for all pipelines with the same chunker.

    Raises:
        UserError: The directory has no run, or its tasks' data have changed.
    """
    for jobs in FinishedRun.at(run).by_task.values():
        yield from _of_task(jobs)


def answer_score(finished: ExampleFiles, metrics: Mapping[str, Metric]) -> float | None:
    """Returns the score by the judging metric; None without metrics of answers."""
    name = judging_metric(name for name in metrics if not name.startswith("recall"))
    statistics = finished.statistics.statistics.get(name)
    return None if statistics is None else metrics[name].score(statistics)


def _of_task(jobs: Sequence[FinishedJob]) -> Iterator[ExampleTrace]:
    factory = StageFactory()
    readers = [_JobReader.of(job, factory) for job in jobs]
    # Stop reading the data after the last finished example of all jobs.
    # A stopped run needs only its part of the data.
    examples = takewhile(lambda _: any(r.rows.next for r in readers), jobs[0].examples())
    # Chunks come from the cache of the run, so that nothing is computed again (decision 25).
    cache = Cache(cache_directory())
    for _, group in by_document(examples):
        group[0].document.use_cache(cache)
        # For one document at a time, since chunks of a whole task would fill the memory.
        covers: dict[Any, ChunkCover] = {}
        for example in group:
            results = [(reader, reader.rows.take(example.id)) for reader in readers]
            gold = gold_of(example) if any(result for _, result in results) else None
            yield from (
                reader.trace(example, gold, result, covers) for reader, result in results if result
            )
    for job, reader in zip(jobs, readers, strict=True):
        reader.rows.check_end(f"{job.run.directory.path}: {job.task}")


@dataclass(frozen=True)
class _JobReader:
    """Traces the examples of one pipeline on one task."""

    job: tuple[str, str]
    chunker: Chunker
    rows: FinishedExamples
    metrics: Mapping[str, Metric]

    @classmethod
    def of(cls, job: FinishedJob, factory: StageFactory) -> _JobReader:
        chunker = factory.stage(job.point.stages["chunker"])
        return cls((job.pipeline, job.task), chunker, FinishedExamples(job.files), job.metrics)

    def trace(
        self,
        example: Example,
        gold: Gold | None,
        finished: ExampleFiles,
        covers: dict[Any, ChunkCover],
    ) -> ExampleTrace:
        """Returns the trace of an example.

        Args:
            example: The example.
            gold: Proof of its answer.
            finished: Results of the example in the run.
            covers: Chunks of its document by chunker and question; missing ones are added.
        """
        cover = ChunkCover.of(())
        if gold:
            # Offsets of another version of the document would point to other text.
            check_document(self.job[1], example, finished)
        if gold and finished.prediction:
            # Most chunkers ignore the question, so one index serves all questions of a document.
            key = (memo_key(self.chunker), example.question if asks_question(self.chunker) else "")
            cover = covers[key] = covers.get(key) or self._cover(example)
        score = answer_score(finished, self.metrics)
        return trace_example(self.job, example, gold, cover, finished, score=score)

    def _cover(self, example: Example) -> ChunkCover:
        try:
            with collect_notes():  # the run has already stored the notes
                chunks = document_chunks(self.chunker, example)
        except ExampleError as error:
            message = f"the chunker fails, although it succeeded in the run: {error.message}"
            raise UserError(f"example {example.id!r}: {message}") from error
        return ChunkCover.of(chunk.span for chunk in chunks)
