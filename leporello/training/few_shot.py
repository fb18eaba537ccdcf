"""Examples for few-shot readers, drawn from a train split as the pipeline reads it."""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from leporello.cache.store import Cache
from leporello.config import Pipeline, TaskSpec
from leporello.core.calls.contracts import check_files
from leporello.core.errors import UserError
from leporello.core.files import atomically, cache_directory, in_utf8
from leporello.core.protocols import Task
from leporello.core.records import JSON, Example, Read
from leporello.engine.progress import Progress
from leporello.engine.task_examples import examples_of, task_errors
from leporello.jobs.directory import safe_name
from leporello.jobs.options import FewShotOptions, takes
from leporello.training.splits import one_job
from leporello.training.training_pairs import Supervision, check_supervises, supervise


@dataclass(frozen=True)
class FewShotExamples:
    """Result of `few_shot_examples`.

    Attributes:
        file: File of the examples, one per line.
        pipeline: Name of the pipeline whose inputs they are.
        split: Split of the task that they were drawn from; empty without splits.
        examples: Number of examples that were written.
        skipped: Number of drawn examples that failed, or whose answer is not among their choices.
    """

    file: Path
    pipeline: str
    task: str
    split: str
    examples: int
    skipped: int


@takes(FewShotOptions)
def few_shot_examples(options: FewShotOptions) -> FewShotExamples:
    """Draws examples with references, and writes the input of the pipeline's reader for each."""
    _, point, chosen = one_job("examples", options)
    # The train split, since readers refuse examples of the data that they answer (decision 20).
    if options.split or chosen.has_splits:
        chosen = chosen.with_split(options.split or "train")
    name = safe_name(f"{point.name}+{chosen.name}")
    file = (options.out or Path("examples") / f"{name}.jsonl").resolve()
    # The file may have been edited by hand (decision 20).
    if file.exists() and not options.update:
        raise UserError(f"{file} already exists: --update replaces it, --out names another file")
    # The pipeline selects the contexts, since documents are far longer than a window. They do not
    # follow a sweep over the chunker (decision 20).
    stages, source = point.build(), chosen.spec.build()
    check_files(stages)
    check_supervises(point.name, stages)
    with task_errors(chosen.name):
        data = str(source.fingerprint())
    examples = _draw(source, chosen, options.count, options.seed)
    cache = Cache(cache_directory()) if options.cached else None
    rows = _rows(stages, examples, data, cache)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomically(file) as lines:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    drawn_split = str(chosen.spec.resolved().get("split") or "")
    return FewShotExamples(
        file, point.name, chosen.name, drawn_split, len(rows), len(examples) - len(rows)
    )


def _draw(source: Task, task: TaskSpec, count: int, seed: int) -> list[Example]:
    """Returns the drawn examples, in an order that depends only on the seed."""
    numbers = random.Random(seed)
    # A number per example in file order, so that a larger count keeps the smaller draw.
    answered = filter(_has_answer, examples_of(source, task.name))
    numbered = ((numbers.random(), example) for example in answered)
    sample = heapq.nsmallest(count, numbered, key=itemgetter(0))
    if not sample:
        raise UserError(f"task {task.name!r} has no example with a reference, so none can be drawn")
    return [example for _, example in sample]


def _has_answer(example: Example) -> bool:
    return not example.fault and any(text.strip() for text in example.references[:1])


def _rows(
    stages: Pipeline, examples: Sequence[Example], data: str, cache: Cache | None
) -> list[Mapping[str, JSON]]:
    rows: list[Mapping[str, JSON]] = []
    with Progress("drawing examples", len(examples)) as progress:
        for example in examples:
            rows += _row(example, data, supervise(stages, [example], progress, cache))
    if not rows:
        raise UserError(
            "no drawn example is usable: a stage failed, or the answer is not among the choices"
        )
    return rows


def _row(example: Example, data: str, supervision: Supervision) -> Iterator[Mapping[str, JSON]]:
    """Yields the row of the first read if it has an answer, which must be among its choices."""
    # Only the first read: several reads of one example would be nearly the same example.
    for read, answer in zip(supervision.inputs[:1], supervision.targets, strict=False):
        if answer.strip() and (not read.choices or answer.strip() in read.choices):
            yield {
                "id": in_utf8(example.id),
                "answer": in_utf8(answer),
                **_question_fields(read),
                # By these, readers refuse examples of the data they answer (decision 20).
                "document_sha256": example.document.sha256,
                "data": data,
            }


def _question_fields(read: Read) -> dict[str, JSON]:
    """Returns the fields of a read; a prompt has the instruction only before its question."""
    fields: dict[str, JSON] = {
        "question": in_utf8(read.question),
        "passages": [in_utf8(text) for text in read.passages if isinstance(text, str)],
        "choices": list(map(in_utf8, read.choices)),
        "title": in_utf8(read.title),
    }
    return {name: value for name, value in fields.items() if value}
