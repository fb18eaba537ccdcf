"""Examples of a run side by side with their predictions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from leporello.config import load_config
from leporello.core.files import read_rows
from leporello.core.records import Example, Prediction
from leporello.engine.results.serialization import prediction_from_row
from leporello.engine.task_examples import examples_of
from leporello.jobs.directory import RunDirectory


def answers(
    run: Path, pipeline: str, task: str, count: int
) -> Iterator[tuple[Example, Prediction]]:
    """Yields up to `count` answers of one pipeline on one task, evenly spread over it."""
    directory = RunDirectory(run)
    path = directory.results(pipeline, task) / "predictions.jsonl"
    total = sum(1 for _ in read_rows(path))
    indices = {index * total // min(count, total) for index in range(min(count, total))}
    rows = (row for index, row in enumerate(read_rows(path)) if index in indices)
    chosen = {row["id"]: prediction_from_row(row) for row in rows}
    source = load_config([directory.config]).tasks[task].spec.build()
    for example in examples_of(source, task):
        if example.id in chosen:
            yield example, chosen[example.id]
