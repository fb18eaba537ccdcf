"""Verifies finished runs: runs a sample of finished examples again without cache, and compares."""

import math
import random
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from leporello.core.files import write_json
from leporello.core.records import JSON
from leporello.engine.progress import Listener, Progress
from leporello.engine.reading import BatchReaders, restore_batch_sizes
from leporello.engine.results.finished import FinishedRow
from leporello.engine.rounds import Rounds
from leporello.engine.store import MemoryStore
from leporello.engine.task_examples import examples_of, no_answer_of, normalizer_of
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
    files = context.files(job)
    end = sys.maxsize if context.limit is None else context.limit
    failures = {row.number: row.failure for row in files.statistics() if row.number < end}
    finished = [number for number, failure in failures.items() if failure is None]
    count = math.ceil(_SHARE * len(finished))
    # Without a seed, so that each verification checks different examples.
    sample = frozenset(random.SystemRandom().sample(finished, count))
    second_run = _run_again(job, context, sample, failures.keys() - sample)
    differences: list[ResultDifference] = []
    for example in files.examples():
        if example.number in sample:
            assert example.prediction is not None
            differences += _differences(job, example.prediction, second_run[example.number])
    verification = Verification(count, tuple(differences))
    write_json(files.folder / "verify.json", asdict(verification))
    return verification


def _run_again(
    job: Job, context: RunContext, chosen: Collection[int], others: Iterable[int]
) -> dict[int, FinishedRow]:
    stages = replace(job.pipeline.build(), no_answer=no_answer_of(job.source))
    # Outputs depend on the batch size, so the sizes are those of the run.
    restore_batch_sizes(stages, context.directory.sizes().get(sizes_key(job.pipeline), {}))
    normalise = normalizer_of(job.source, wanted=job.pipeline.normalised)
    store = MemoryStore()
    store.done |= {*others}
    # The examples that are not chosen count in groups, and take no memory.
    limits = replace(context.limits, max_active=round(context.limits.max_active / _SHARE))
    with Progress(f"verifying {job.name}", len(chosen)) as progress:
        listener = Listener(progress.take, lambda: context.check(progress))
        readers = BatchReaders(stages, limits=limits)
        rounds = Rounds(readers, store, listener, normalise=normalise)
        examples = islice(examples_of(job.source, job.task.name), context.limit)
        return {row.number: row for row in rounds.run(examples)}


def _differences(job: Job, was: Mapping[str, Any], row: FinishedRow) -> Iterator[ResultDifference]:
    now = row.prediction or {}
    if row.failure:
        now = {"failure": row.failure["error"]}
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            yield ResultDifference(
                job.pipeline.name, job.task.name, was["id"], name, was.get(name), now.get(name)
            )
