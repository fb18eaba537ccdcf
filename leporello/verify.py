"""Runs a sample of finished examples again, from nothing kept, and compares."""

from __future__ import annotations

import math
import random
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from leporello.crew import Crew
from leporello.directory import write_json
from leporello.engine import Engine
from leporello.executors.groups import by_document, select_group
from leporello.jobs import Job
from leporello.journal import Journal
from leporello.means import Means
from leporello.progress import Progress
from leporello.reading import Pool, settle
from leporello.records import JSON
from leporello.sizes import Sizes
from leporello.supply import examples_of, normaliser_of

__all__ = ["Difference", "Verification", "verify_job"]

_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """What came out otherwise when an example was run again.

    Attributes:
        pipeline: Its name.
        task: Its name.
        example: Its id.
        field: Of the prediction.
        was: In the run.
        now: When it was run again.
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
        examples: That were run again.
        differing: What came out otherwise.
    """

    examples: int
    differing: tuple[Difference, ...]


def verify_job(job: Job, means: Means) -> Verification:
    """Runs a random twentieth of a job's finished examples again, without cache and journal.

    They are read in windows of their own: a reader whose words depend on its batch mates may
    differ without fault.

    Raises:
        UserError: As a run does.
    """
    journal = Journal(means.directory.journal(job.pipeline.name, job.task.name))
    within = sys.maxsize if means.limit is None else means.limit
    finished = [n for n in journal.done if n not in journal.failed and n < within]
    count = math.ceil(_SHARE * len(finished))
    chosen = sorted(random.SystemRandom().sample(finished, count))
    again = _run_again(job, means, frozenset(chosen))
    found: list[Difference] = []
    for number, was in zip(chosen, journal.rows_of(chosen), strict=True):
        found += _differences(job, was["prediction"], again[number])
    verification = Verification(count, tuple(found))
    folder = means.directory.results(job.pipeline.name, job.task.name)
    write_json(folder / "verify.json", asdict(verification))
    return verification


def _run_again(job: Job, means: Means, chosen: Collection[int]) -> dict[int, dict[str, Any]]:
    """Returns the new rows by the examples' numbers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(f"verifying {job.name}", len(chosen)) as progress,
    ):
        journal, stages = Journal(Path(folder) / "journal.jsonl"), job.pipeline.build()
        settle(stages.reader, Sizes(means.directory, job.pipeline).kept)  # to pack as the run did
        limits = means.limits
        crew = Crew(stages, {}, normaliser_of(job.source), limits.example_timeout)
        pool = Pool(stages.reader, None, limits.example_timeout)
        engine = Engine(
            journal, pool, crew, progress, limits, before_step=lambda: means.check(progress)
        )
        every = islice(examples_of(job.source, job.task.name), means.limit)
        for first, examples in by_document(every):
            numbers = [n for n in range(first, first + len(examples)) if n in chosen]
            if numbers:  # all questions on the document are asked, as in the run
                found = select_group(stages, examples, limits.example_timeout).found
                engine.offer(numbers, crew.ready(first, examples, found, journal))
        engine.finish()
        rows = dict(zip(journal.done, journal.rows(), strict=True))
        journal.close()
    return rows


def _differences(job: Job, was: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Difference]:
    now = row.get("prediction") or {"failure": row["failure"]["error"]}
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            yield Difference(
                job.pipeline.name, job.task.name, was["id"], name, was.get(name), now.get(name)
            )
