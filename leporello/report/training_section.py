"""Describes the training of the runs' readers, from the records that `train` stores with models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.jobs.directory import RunDirectory
from leporello.models.locate import model_fingerprint
from leporello.report.join import JobRows
from leporello.report.plots import Plot, Point, Series, lines
from leporello.training.model_card import CARD, TrainingRecord, read_record

_LOSSES = {"loss": "training", "validation_loss": "validation"}


def trainings(jobs: Sequence[JobRows]) -> tuple[list[str], list[Plot], list[str]]:
    """Returns a paragraph per reader that `train` made, their plots, and notes on omitted ones."""
    users: dict[tuple[str, JSON], list[str]] = {}
    for job in jobs:
        for key in _models(job):
            users.setdefault(key, []).append(job.label)
    texts: list[str] = []
    plots: list[Plot] = []
    notes: list[str] = []
    for (model, content), labels in users.items():
        names = ", ".join(dict.fromkeys(labels))
        try:
            record = _record(Path(model), content)
        except UserError as error:
            notes.append(f"{names}: the training of its reader is not shown: {error}")
            continue
        if record:
            texts.append(_text(names, record))
            plots += _plots(record)
    return texts, plots, notes


def _models(job: JobRows) -> Iterator[tuple[str, JSON]]:
    """Yields paths of the models of a job's reader, with their content hashes in the run."""
    signature: Any = RunDirectory(job.run).jobs().get((job.pipeline, job.task), {})
    reader = signature.get("pipeline", {}).get("reader", {})
    model = reader.get("model")
    if isinstance(model, str) and Path(model).is_absolute():
        yield model, signature.get("models", {}).get(model)


def _record(model: Path, content: JSON) -> TrainingRecord | None:
    if not model.exists():
        raise UserError(f"{model} does not exist any more")
    record = read_record(model)
    if record and model_fingerprint(str(model)) != content:
        raise UserError(f"{model} is another model now")
    return record


def _text(names: str, record: TrainingRecord) -> str:
    validated = f"validated on {record.validated}" if record.validated else "not validated"
    shared = f", {record.shared:,} of whose documents are training data" if record.shared else ""
    values = ", ".join(f"{name} {value}" for name, value in record.kept.items())
    checkpoint = f" Checkpoint: {values}." if values else ""
    return (
        f"{names}: trained on {record.learnt} of {record.task}, {validated}{shared}."
        f"{checkpoint} Settings and scores: {CARD} of the model."
    )


def _plots(record: TrainingRecord) -> Iterator[Plot]:
    """Yields the losses at each learning rate, and the metric at all of them."""
    where = f"{record.pipeline} on {record.task}"
    for rate, rows in record.curves.items():
        losses = [_series(rows, kind, name) for kind, name in _LOSSES.items()]
        yield from _plot(f"Loss at learning rate {rate}, {where}", "loss", losses)
    scores = [
        _series(rows, "validation_score", f"learning rate {rate}")
        for rate, rows in record.curves.items()
    ]
    yield from _plot(f"{record.metric} on validation, {where}", record.metric, scores)


def _plot(title: str, y: str, series: Sequence[Series]) -> Iterator[Plot]:
    """Yields the plot, if any series has a point."""
    if nonempty := [line for line in series if line.points]:
        yield lines(title, nonempty, x_name="steps of the optimizer", y_name=y, digits=4)


def _series(rows: Sequence[Mapping[str, float]], kind: str, name: str) -> Series:
    points = [(row["step"], row[kind]) for row in rows if kind in row]
    finite = [Point(x, y, y, y) for x, y in points if math.isfinite(y)]
    suffix = f" ({len(points) - len(finite):,} not finite)" if len(finite) < len(points) else ""
    return Series(f"{name}{suffix}", tuple(finite))
