"""Runs a sample of finished examples again, without cache and store, and compares."""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from leporello.core.files import write_json
from leporello.core.records import JSON
from leporello.engine.combining import CombinerRunner
from leporello.engine.progress import Progress, ProgressListener
from leporello.engine.reading import BatchReaders, restore_batch_sizes
from leporello.engine.results.finished import FinishedRow
from leporello.engine.rounds import Rounds, exhaust
from leporello.engine.selection import by_document, select_document
from leporello.engine.store import MemoryStore
from leporello.engine.task_examples import examples_of, no_answer_of, normalizer_of
from leporello.jobs.files import JobFiles
from leporello.jobs.jobs import Job, RunContext
from leporello.jobs.timings import sizes_key

_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """What came out otherwise when an example was run again.

    Attributes:
        pipeline: Name of the pipeline.
        task: Name of the task.
        example: Id of the example.
        field: Name of the prediction's field.
        was: Value in the run.
        now: Value when it was run again.
    """

    pipeline: str
    task: str
    example: str
    field: str
    was: JSON
    now: JSON


@dataclass(frozen=True, slots=True)
class Verification:
    """What running some examples of a job again came to.

    Attributes:
        examples: Number of examples that were run again.
        differing: Differences that came out.
    """

    examples: int
    differing: tuple[ResultDifference, ...]


def verify_job(job: Job, context: RunContext) -> Verification:
    """Runs a random twentieth of a job's finished examples again, without cache and store.

    They are read in windows of their own: a reader whose words depend on its batch mates may
    differ without fault.

    Raises:
        UserError: As a run does.
    """
    files = JobFiles(context.directory, job.pipeline.name, job.task.name)
    within = sys.maxsize if context.limit is None else context.limit
    rows = {one.number: one.failure is None for one in files.statistics() if one.number < within}
    finished = [number for number, succeeded in rows.items() if succeeded]
    count = math.ceil(_SHARE * len(finished))
    # Not seeded: each time other examples are looked at.
    chosen = frozenset(random.SystemRandom().sample(finished, count))
    repeated = _run_again(job, context, chosen)
    differing: list[ResultDifference] = []
    for example in files.examples():
        if example.statistics.number in chosen:
            assert example.prediction is not None
            differing += _differences(job, example.prediction, repeated[example.statistics.number])
    verification = Verification(count, tuple(differing))
    write_json(files.folder / "verify.json", asdict(verification))
    return verification


def _run_again(job: Job, context: RunContext, chosen: Collection[int]) -> dict[int, FinishedRow]:
    """Returns the new rows by the examples' numbers."""
    timeout = context.limits.example_timeout
    stages = replace(job.pipeline.build(), no_answer=no_answer_of(job.source))
    # Answers depend on what is read together, so batches are as large as they were.
    restore_batch_sizes(stages, context.directory.sizes().get(sizes_key(job.pipeline), {}))
    normalise = normalizer_of(job.source, wanted=job.pipeline.normalised)
    runner = CombinerRunner(stages, {}, normalise, timeout)
    readers, store = BatchReaders(stages, None, timeout), MemoryStore()
    with Progress(f"verifying {job.name}", len(chosen)) as progress:
        listener = ProgressListener(progress, lambda: context.check(progress))
        rounds = Rounds(runner, readers, store, context.limits, listener)
        every = islice(examples_of(job.source, job.task.name), context.limit)
        for first, examples in by_document(every):
            wanted = [n for n in range(first, first + len(examples)) if n in chosen]
            if wanted:  # all questions on the document are asked, as in the run
                selected = select_document(stages, examples, timeout).selections
                for number in wanted:
                    index = number - first
                    exhaust(rounds.add(number, [examples[index]], [selected[index]]))
        exhaust(rounds.finish())
    return {row.number: row for row in store.rows()}


def _differences(job: Job, was: Mapping[str, Any], row: FinishedRow) -> Iterator[ResultDifference]:
    now: Mapping[str, Any] = json.loads(row.prediction)
    if row.failed:
        now = {"failure": now["error"]}
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            yield ResultDifference(
                job.pipeline.name, job.task.name, was["id"], name, was.get(name), now.get(name)
            )
