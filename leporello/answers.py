"""Examples of a run side by side with their predictions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from leporello.config import load_config
from leporello.directory import RunDirectory, read_rows
from leporello.records import Example, Prediction
from leporello.rows import prediction_from_row

__all__ = ["answers"]


def answers(run: Path, count: int) -> Iterator[tuple[Example, Prediction]]:
    """Yields up to `count` answers of the run's first pipeline and task, evenly spread over it."""
    directory = RunDirectory(run)
    pipeline, task = next(iter(directory.jobs()))
    rows = list(read_rows(directory.results(pipeline, task) / "predictions.jsonl"))
    count = min(count, len(rows))
    wanted = {rows[place * len(rows) // count]["id"] for place in range(count)}
    chosen = {row["id"]: prediction_from_row(row) for row in rows if row["id"] in wanted}
    source = load_config([directory.config]).tasks[task].spec.build()
    for example in source.examples() if chosen else ():
        if example.id in chosen:
            yield example, chosen[example.id]
