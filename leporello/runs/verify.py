"""Verifies finished runs: runs a sample of finished examples again without cache, and compares."""

import math
import random
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from leporello.core.files import write_json
from leporello.core.records import JSON
from leporello.engine.progress import Listener, Progress
from leporello.engine.reading import BatchReaders, restore_batch_sizes
from leporello.engine.results.finished import FinishedRow
from leporello.engine.rounds import Rounds
from leporello.engine.selection import by_document, select_document
from leporello.engine.store import MemoryStore
from leporello.engine.task_examples import examples_of, no_answer_of, normalizer_of
from leporello.jobs.files import JobFiles
from leporello.jobs.jobs import Job, RunContext
from leporello.runs.timings import sizes_key

_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """A field of a prediction that differed when its example was run again."""

    pipeline: str
    task: str
    example: str  # id of the example
    field: str  # name of the prediction's field
    was: JSON  # value in the run
    now: JSON  # value when it was run again


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of running some examples of a job again."""

    examples: int  # number of examples that were run again
    differing: tuple[ResultDifference, ...]  # differences between the runs


def verify_job(job: Job, context: RunContext) -> Verification:
    """Runs a random 5 % of a job's finished examples again, in other batches and without cache."""
    files = JobFiles(context.directory, job.pipeline.name, job.task.name)
    end = sys.maxsize if context.limit is None else context.limit
    failures = {row.number: row.failure for row in files.statistics() if row.number < end}
    finished = [number for number, failure in failures.items() if failure is None]
    count = math.ceil(_SHARE * len(finished))
    # Without a seed, so that each verification checks different examples.
    sample = frozenset(random.SystemRandom().sample(finished, count))
    second_run = _run_again(job, context, sample)
    differences: list[ResultDifference] = []
    for example in files.examples():
        if example.statistics.number in sample:
            assert example.prediction is not None
            again = second_run[example.statistics.number]
            differences += _differences(job, example.prediction, again)
    verification = Verification(count, tuple(differences))
    write_json(files.folder / "verify.json", asdict(verification))
    return verification


def _run_again(job: Job, context: RunContext, chosen: Collection[int]) -> dict[int, FinishedRow]:
    timeout = context.limits.example_timeout
    stages = replace(job.pipeline.build(), no_answer=no_answer_of(job.source))
    # Outputs depend on the batch size, so the sizes are those of the run.
    restore_batch_sizes(stages, context.directory.sizes().get(sizes_key(job.pipeline), {}))
    normalise = normalizer_of(job.source, wanted=job.pipeline.normalised)
    readers, store = BatchReaders(stages, None, timeout), MemoryStore()
    with Progress(f"verifying {job.name}", len(chosen)) as progress:
        listener = Listener(progress.take, lambda: context.check(progress))
        rounds = Rounds(readers, store, context.limits, listener, normalise=normalise)
        all_examples = islice(examples_of(job.source, job.task.name), context.limit)
        for first, examples in by_document(all_examples):
            numbers = [n for n in range(first, first + len(examples)) if n in chosen]
            if numbers:  # retrieve for all questions on the document, as in the run
                selected = select_document(stages, examples, timeout)
                for number in numbers:
                    index = number - first
                    rounds.add(number, [examples[index]], [selected[index]])
        rounds.finish()
    return {row.number: row for row in store.rows()}


def _differences(job: Job, was: Mapping[str, Any], row: FinishedRow) -> Iterator[ResultDifference]:
    now = row.prediction or {}
    if row.failure:
        now = {"failure": row.failure["error"]}
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            yield ResultDifference(
                job.pipeline.name, job.task.name, was["id"], name, was.get(name), now.get(name)
            )
