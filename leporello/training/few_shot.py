"""Examples for few-shot readers, drawn from a train split as the pipeline reads it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.cache.store import Cache
from leporello.config import Pipeline, TaskSpec
from leporello.core.calls.contracts import check_files
from leporello.core.errors import UserError
from leporello.core.files import atomically, in_utf8
from leporello.core.protocols import Task
from leporello.core.records import JSON, Example, Read
from leporello.engine.progress import Progress
from leporello.engine.task_examples import examples_of, task_errors
from leporello.jobs.directory import safe_name
from leporello.jobs.options import FewShotOptions, takes
from leporello.models.locate import cache_directory
from leporello.training.splits import one_job
from leporello.training.training_pairs import Supervision, check_supervises, supervise


@dataclass(frozen=True)
class FewShotExamples:
    """Few-shot examples that were drawn.

    Attributes:
        file: File of the examples, one a line.
        pipeline: Name of the pipeline whose inputs they are.
        task: Name of the task that they were drawn from.
        split: Split of the task; empty where it has none.
        examples: Number of examples that were written.
        skipped: Number of those that were drawn and failed, or whose answer is none of their
            choices.
    """

    file: Path
    pipeline: str
    task: str
    split: str
    examples: int
    skipped: int


@takes(FewShotOptions)
def few_shot_examples(options: FewShotOptions) -> FewShotExamples:
    """Draws examples of a task, and writes what the pipeline would have its reader see of them.

    Only examples with references are drawn.

    Raises:
        UserError: A mistake of the user's, or nothing to draw from.
    """
    _, point, chosen = one_job("examples", options)
    # From the train split: the reader refuses examples of what it is asked (decision 20).
    if options.split or chosen.has_splits:
        chosen = chosen.with_split(options.split or "train")
    name = safe_name(f"{point.name}+{chosen.name}")
    file = (options.out or Path("examples") / f"{name}.jsonl").resolve()
    if file.exists() and not options.update:
        raise UserError(f"{file} is there already (--update replaces it); --out names another")
    stages, source = point.build(), chosen.spec.build()
    check_files(stages)
    check_supervises(point.name, stages)
    with task_errors(chosen.name):
        data = str(source.fingerprint())
    drawn = _draw(source, chosen, options.count, options.seed)
    cache = Cache(cache_directory()) if options.cached else None
    rows = _rows(stages, drawn, data, cache)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomically(file) as lines:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    drawn_split = str(chosen.spec.resolved().get("split") or "")
    return FewShotExamples(
        file, point.name, chosen.name, drawn_split, len(rows), len(drawn) - len(rows)
    )


def _draw(source: Task, task: TaskSpec, count: int, seed: int) -> list[Example]:
    """Returns the examples in the order of the draw, which the seed alone says.

    The task is gone through twice, so that only the documents that are drawn are held.
    """
    numbers = random.Random(seed)
    keys = {e.id: numbers.random() for e in examples_of(source, task.name) if _has_answer(e)}
    if not keys:
        raise UserError(f"task {task.name!r} has no example with a reference: none can be shown")
    order = {name: rank for rank, name in enumerate(sorted(keys, key=keys.__getitem__)[:count])}
    drawn = [e for e in examples_of(source, task.name) if e.id in order]
    return sorted(drawn, key=lambda example: order[example.id])


def _has_answer(example: Example) -> bool:
    return not example.fault and any(text.strip() for text in example.references[:1])


def _rows(
    stages: Pipeline, drawn: Sequence[Example], data: str, cache: Cache | None
) -> list[Mapping[str, JSON]]:
    rows: list[Mapping[str, JSON]] = []
    with Progress("drawing examples", len(drawn)) as progress:
        for example in drawn:
            if cache:
                example.document.use_cache(cache)
            rows += _row(example, data, supervise(stages, [example], progress))
    if not rows:
        raise UserError("none of the examples can be shown: their stages failed, or their answers")
    return rows


def _row(example: Example, data: str, supervision: Supervision) -> Iterator[Mapping[str, JSON]]:
    """Yields the row of the first read that has an answer, unless that is none of its choices."""
    for read, answer in zip(supervision.inputs[:1], supervision.targets, strict=False):
        if answer.strip() and (not read.choices or answer.strip() in read.choices):
            yield {
                "id": in_utf8(example.id),
                "answer": in_utf8(answer),
                **_question_fields(read),
                "document_sha256": example.document.sha256,
                "data": data,
            }


def _question_fields(read: Read) -> dict[str, JSON]:
    """Returns what was asked; the task's instruction stands before the question that matters."""
    fields: dict[str, JSON] = {
        "question": in_utf8(read.question),
        "passages": [in_utf8(text) for text in read.passages if isinstance(text, str)],
        "choices": list(map(in_utf8, read.choices)),
        "title": in_utf8(read.title),
    }
    return {name: value for name, value in fields.items() if value}
