"""How the readers of the runs were trained: what `train` left beside their models."""

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

# Settings that concern every reader, and those of fine-tuning that are told whatever they are.
_EVERY = ("preset", "validation", "holdout", "references", "choose")
_ALWAYS = ("epochs", "learning_rate", "schedule", "best_by")
_STEPS = "steps of the optimizer"
_LOSSES = {"loss": "learnt", "validation_loss": "validated on"}


@dataclass(frozen=True, slots=True)
class TrainingSummary:
    """One trained reader.

    Attributes:
        title: Names of the pipelines that use it.
        facts: Names and values, for people.
        plots: Curves of the training; none if it has not been fine-tuned.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    plots: Sequence[Plot]


def trainings(jobs: Sequence[JobRows]) -> tuple[list[TrainingSummary], list[str]]:
    """Returns how the readers that `train` made were trained, and notes on those left out."""
    users: dict[tuple[str, JSON], list[str]] = {}
    for job in jobs:
        for used in _models(job):
            users.setdefault(used, []).append(job.label)
    summaries, notes = [], []
    for (model, content), labels in users.items():
        names = ", ".join(dict.fromkeys(labels))
        try:
            record = _record(Path(model), content)
        except UserError as error:
            notes.append(f"{names}: how its reader was trained is not shown: {error}")
        else:
            summaries += [sentences_of(names, record)] if record else []
    return summaries, notes


def _models(job: JobRows) -> Iterator[tuple[str, JSON]]:
    """Yields the models that a job's reader has as paths, each with its content at that time."""
    signature: Any = RunDirectory(job.run).jobs().get((job.pipeline, job.task), {})
    reader = signature.get("pipeline", {}).get("reader", {})
    model = reader.get("model")
    if isinstance(model, str) and Path(model).is_absolute():
        yield model, signature.get("models", {}).get(model)


def _record(model: Path, content: JSON) -> TrainingRecord | None:
    if not model.exists():
        raise UserError(f"there is no {model} any more")
    record = read_record(model)
    if record and model_fingerprint(str(model)) != content:
        raise UserError(f"what lies at {model} is another model now")
    return record


def sentences_of(names: str, record: TrainingRecord) -> TrainingSummary:
    """Returns what a page shows of a training.

    Args:
        names: Names of the pipelines that use its model.
        record: Record as it lies beside the model.
    """
    facts = {
        "trained as": f"{record.base}, its reader {record.reader}",
        "learnt": f"{record.learnt} of {record.task}: {_counted(record.train)}",
        "validated on": _validated(record),
        "seed": str(record.settings.get("seed", "")),
        "settings": ", ".join(_settings(record)),
        "kept": ", ".join(f"{n} {_short(value)}" for n, value in record.kept.items()),
        "chosen on validation": ", ".join(map(str, record.chosen.values())),
        "scores on validation": ", ".join(f"{n} {v:.2f}" for n, v in record.scores.items()),
    }
    return TrainingSummary(
        names, [(name, fact) for name, fact in facts.items() if fact], [*_plots(record)]
    )


def _counted(counts: Mapping[str, JSON]) -> str:
    named = (f"{counts[name]:,} {name}" for name in ("examples", "documents", "inputs") if counts)
    return ", ".join(named)


def _validated(record: TrainingRecord) -> str:
    if not record.validated:
        return "nothing"
    counted = f": {_counted(record.validation)}" if record.validation else ""
    shared = f"; {record.shared:,} documents are learnt too: these scores flatter"
    return f"{record.validated}{counted}{shared if record.shared else ''}"


def _settings(record: TrainingRecord) -> Iterator[str]:
    """Yields the settings that are not the defaults, and those that every curve depends on."""
    usual = json.loads(json.dumps(asdict(Training())))
    counted = "batch_tokens" if record.settings.get("batch_tokens") else "batch_size"
    shown = (*_ALWAYS, counted) if record.curves else ()
    for name, value in record.settings.items():
        concerns = name in _EVERY or (record.curves and name != "seed")
        if concerns and (name in shown or value != usual.get(name)):
            listed = value if isinstance(value, list) else [value]
            yield f"{name} {' | '.join(map(_short, listed))}"


def _short(value: JSON) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# -- curves --------------------------------------------------------------------------------------


def _plots(record: TrainingRecord) -> Iterator[Plot]:
    """Yields losses, and the metric where it was measured, one line a learning rate."""
    rates = record.curves
    if len(rates) == 1:  # both losses go into one plot, where they part is where it overfits
        [rate] = rates
        series = [_series(record, rate, kind, name) for kind, name in _LOSSES.items()]
        yield from _drawn(record, "Loss", "loss", series)
    else:
        for kind, name in _LOSSES.items():
            series = [_series(record, rate, kind, f"learning rate {rate}") for rate in rates]
            yield from _drawn(record, f"Loss on what is {name}", "loss", series)
    series = [_series(record, rate, "validation_score", f"learning rate {rate}") for rate in rates]
    yield from _drawn(record, f"{record.metric} on validation", record.metric, series)


def _drawn(record: TrainingRecord, title: str, y: str, series: Sequence[Series]) -> Iterator[Plot]:
    """Yields the plot, if any series has a point; the kept checkpoint has a ring."""
    if shown := [line for line in series if line.points]:
        ringed = any(point.chosen for line in shown for point in line.points)
        ring = ": the kept checkpoint has a ring" if ringed else ""
        whole = f"{title}, {record.pipeline} on {record.task}{ring}"
        yield lines(whole, shown, x_name=_STEPS, y_name=y, digits=4)


def _series(record: TrainingRecord, rate: str, kind: str, name: str) -> Series:
    rows = [row for row in record.curves[rate] if kind in row]
    finite = [row for row in rows if math.isfinite(row[kind])]
    lost = f" ({len(rows) - len(finite):,} no numbers)" if len(finite) < len(rows) else ""
    points = (_point(row["step"], row[kind], _kept(record, rate, kind, row)) for row in finite)
    return Series(f"{name}{lost}", tuple(points))


def _kept(record: TrainingRecord, rate: str, kind: str, row: Mapping[str, float]) -> bool:
    """Says whether a row tells of the checkpoint that was kept; losses on the way tell of none."""
    kept: Mapping[str, Any] = record.kept
    same = kept.get("step") == row["step"] and f"{kept.get('learning rate', 0):g}" == rate
    return kind != "loss" and same


def _point(step: float, value: float, kept: bool) -> Point:
    return Point(step, value, value, value, f"{step:.6g} (kept)" if kept else "", kept)
