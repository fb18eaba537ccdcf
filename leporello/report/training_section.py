"""Describes the training of the runs' readers, from the records that `train` stores with models."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.core.training import Training
from leporello.jobs.directory import RunDirectory
from leporello.models.locate import model_fingerprint
from leporello.report.join import JobRows
from leporello.report.plots import Plot, Point, Series, lines
from leporello.training.model_card import TrainingRecord, read_record

# Settings of all readers, and settings of fine-tuning that are shown even if they are defaults.
_EVERY = ("preset", "validation", "holdout", "references", "choose")
_ALWAYS = ("epochs", "learning_rate", "schedule", "best_by")
_STEPS = "steps of the optimizer"
_LOSSES = {"loss": "training", "validation_loss": "validation"}


@dataclass(frozen=True, slots=True)
class TrainingSummary:
    """One trained reader.

    Attributes:
        title: Names of the pipelines that use it.
        facts: Names and values for display.
        plots: Curves of the training; empty without fine-tuning.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    plots: Sequence[Plot]


def trainings(jobs: Sequence[JobRows]) -> tuple[list[TrainingSummary], list[str]]:
    """Returns summaries of the readers that `train` made, and notes on those left out."""
    users: dict[tuple[str, JSON], list[str]] = {}
    for job in jobs:
        for key in _models(job):
            users.setdefault(key, []).append(job.label)
    summaries, notes = [], []
    for (model, content), labels in users.items():
        names = ", ".join(dict.fromkeys(labels))
        try:
            record = _record(Path(model), content)
        except UserError as error:
            notes.append(f"{names}: the training of its reader is not shown: {error}")
        else:
            summaries += [sentences_of(names, record)] if record else []
    return summaries, notes


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


def sentences_of(names: str, record: TrainingRecord) -> TrainingSummary:
    """Returns the summary of a training for the page.

    Args:
        names: Names of the pipelines that use its model.
        record: Record of the training.
    """
    facts = {
        "trained as": f"{record.base}, its reader {record.reader}",
        "trained on": f"{record.learnt} of {record.task}: {_format_counts(record.train)}",
        "validated on": _validated(record),
        "seed": str(record.settings.get("seed", "")),
        "settings": ", ".join(_settings(record)),
        "kept checkpoint": ", ".join(f"{n} {_short(value)}" for n, value in record.kept.items()),
        "chosen on validation": ", ".join(map(str, record.chosen.values())),
        "scores on validation": ", ".join(f"{n} {v:.2f}" for n, v in record.scores.items()),
    }
    return TrainingSummary(
        names, [(name, fact) for name, fact in facts.items() if fact], [*_plots(record)]
    )


def _format_counts(counts: Mapping[str, JSON]) -> str:
    parts = (f"{counts[name]:,} {name}" for name in ("examples", "documents", "inputs") if counts)
    return ", ".join(parts)


def _validated(record: TrainingRecord) -> str:
    if not record.validated:
        return "nothing"
    counts = f": {_format_counts(record.validation)}" if record.validation else ""
    note = f"; {record.shared:,} documents are training data too: these scores are optimistic"
    return f"{record.validated}{counts}{note if record.shared else ''}"


def _settings(record: TrainingRecord) -> Iterator[str]:
    """Yields the settings that differ from the defaults, and those that affect every curve."""
    usual = json.loads(json.dumps(asdict(Training())))
    batch_setting = "batch_tokens" if record.settings.get("batch_tokens") else "batch_size"
    always_shown = (*_ALWAYS, batch_setting) if record.curves else ()
    for name, value in record.settings.items():
        concerns = name in _EVERY or (record.curves and name != "seed")
        if concerns and (name in always_shown or value != usual.get(name)):
            values = value if isinstance(value, list) else [value]
            yield f"{name} {' | '.join(map(_short, values))}"


def _short(value: JSON) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# -- curves --------------------------------------------------------------------------------------


def _plots(record: TrainingRecord) -> Iterator[Plot]:
    """Yields plots of the losses and of the metric, with one line per learning rate."""
    rates = record.curves
    if len(rates) == 1:  # both losses in one plot, which shows overfitting
        [rate] = rates
        series = [_series(record, rate, kind, name) for kind, name in _LOSSES.items()]
        yield from _plot(record, "Loss", "loss", series)
    else:
        for kind, name in _LOSSES.items():
            series = [_series(record, rate, kind, f"learning rate {rate}") for rate in rates]
            yield from _plot(record, f"Loss on the {name} data", "loss", series)
    series = [_series(record, rate, "validation_score", f"learning rate {rate}") for rate in rates]
    yield from _plot(record, f"{record.metric} on validation", record.metric, series)


def _plot(record: TrainingRecord, title: str, y: str, series: Sequence[Series]) -> Iterator[Plot]:
    """Yields the plot, if any series has a point; a ring marks the kept checkpoint."""
    if nonempty := [line for line in series if line.points]:
        ringed = any(point.chosen for line in nonempty for point in line.points)
        suffix = ": the kept checkpoint has a ring" if ringed else ""
        title = f"{title}, {record.pipeline} on {record.task}{suffix}"
        yield lines(title, nonempty, x_name=_STEPS, y_name=y, digits=4)


def _series(record: TrainingRecord, rate: str, kind: str, name: str) -> Series:
    rows = [row for row in record.curves[rate] if kind in row]
    finite = [row for row in rows if math.isfinite(row[kind])]
    suffix = f" ({len(rows) - len(finite):,} not finite)" if len(finite) < len(rows) else ""
    points = (_point(row["step"], row[kind], _is_kept(record, rate, kind, row)) for row in finite)
    return Series(f"{name}{suffix}", tuple(points))


def _is_kept(record: TrainingRecord, rate: str, kind: str, row: Mapping[str, float]) -> bool:
    """Returns whether a row belongs to the kept checkpoint; training losses never do."""
    checkpoint: Mapping[str, Any] = record.kept
    is_step = checkpoint.get("step") == row["step"]
    return kind != "loss" and is_step and f"{checkpoint.get('learning rate', 0):g}" == rate


def _point(step: float, value: float, is_kept: bool) -> Point:
    return Point(step, value, value, value, f"{step:.6g} (kept)" if is_kept else "", is_kept)
