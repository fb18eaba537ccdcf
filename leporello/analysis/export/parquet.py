"""Predictions with their scores as a Parquet table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.core.coverage import Coverage
from leporello.core.environment.extras import require
from leporello.core.files import in_utf8
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import ExampleFiles, JobFiles
from leporello.jobs.signature import metrics_of_run
from leporello.metrics import Metric

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 10_000  # that are held at once


def write_parquet(run: Path, folder: Path) -> list[Path]:
    """Writes one table a task, a row for each example of each pipeline, in task order.

    Columns: `pipeline`, `task`, `id`, `prediction` (null where it failed), `failed` (the stage, or
    null), `document_sha256`; the ledger in characters (`document`, `selected`, `read`, `cut`);
    `input_tokens`, `output_tokens`, `dollars`; and `score_METRIC`, of this example alone.

    Args:
        run: Directory of the run.
        folder: Folder of the tables: `TASK.parquet`, a task's `/` as folders.

    Raises:
        UserError: No run lies there, or the extra `parquet` is not installed.
    """
    require("Parquet", "pyarrow")
    import pyarrow.parquet as pq

    directory = RunDirectory.of_run(run)
    jobs = [*directory.jobs()]
    written = []
    for task in dict.fromkeys(task for _, task in jobs):
        pipelines = [pipeline for pipeline, other in jobs if other == task]
        metrics = _metrics(directory, pipelines, task)
        schema = _schema(metrics)
        path = folder / f"{task}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(path, schema) as writer:
            rows = (r for pipeline in pipelines for r in _rows(directory, pipeline, task, metrics))
            while batch := [*islice(rows, _ROWS)]:
                writer.write_table(_table(batch, schema))
        written.append(path)
    return written


def _metrics(directory: RunDirectory, pipelines: list[str], task: str) -> dict[str, Metric]:
    """Returns the metrics that any of the examples was scored by."""
    names: dict[str, None] = {}
    for pipeline in pipelines:
        examples = JobFiles(directory, pipeline, task).statistics()
        names |= dict.fromkeys(next((e.statistics for e in examples if e.statistics), {}))
    return metrics_of_run(directory.jobs()[pipelines[0], task], names)


def _schema(metrics: Mapping[str, Metric]) -> pa.Schema:
    import pyarrow as pa

    texts = ("pipeline", "task", "id", "prediction", "failed", "document_sha256")
    counts = (*Coverage.__slots__, "input_tokens", "output_tokens")
    scores = ("dollars", *(f"score_{name}" for name in metrics))
    return pa.schema(
        [
            *((name, pa.string()) for name in texts),
            *((name, pa.int64()) for name in counts),
            *((name, pa.float64()) for name in scores),
        ]
    )


def _rows(
    directory: RunDirectory, pipeline: str, task: str, metrics: Mapping[str, Metric]
) -> Iterator[dict[str, Any]]:
    for example in JobFiles(directory, pipeline, task).examples():
        scores = {
            f"score_{name}": None if statistics is None else metrics[name].score(statistics)
            for name, statistics in example.statistics.statistics.items()
        }
        yield {"pipeline": pipeline, "task": task, **_ended(example), **scores}


def _ended(example: ExampleFiles) -> dict[str, Any]:
    statistics, prediction = example.statistics, example.prediction
    if statistics.failure:
        return {"id": statistics.id, "failed": statistics.failure[0]}
    assert prediction is not None
    return {
        "id": statistics.id,
        "prediction": in_utf8(prediction["prediction"]),
        "document_sha256": statistics.document,
        **statistics.coverage,
        "input_tokens": statistics.input_tokens,
        "output_tokens": statistics.output_tokens,
        "dollars": statistics.dollars,
    }


def _table(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns = {name: [row.get(name) for row in rows] for name in schema.names}
    return pa.table(columns, schema=schema)
