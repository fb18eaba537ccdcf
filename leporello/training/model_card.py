"""Folder that a training leaves: the pipeline, the record and the card beside the model.

It is free before training begins, and is written completely or not at all.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import atomically, read_json, write_json
from leporello.core.records import JSON
from leporello.core.yaml.writing import write_yaml
from leporello.jobs.manifest import versions

CONFIG, RECORD, CARD = "pipeline.yaml", "training.json", "README.md"
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60  # of a curve in the card


@dataclass
class TrainingRecord:
    """What a training was made from and what it came to.

    Attributes:
        pipeline: Name of the trained pipeline.
        base: Name of the pipeline that it was trained as.
        task: Name of the task.
        learnt: Name of what is learnt, for people.
        validated: Name of what is validated on; empty if nothing.
        reader: Class of the reader that learnt.
        parameters: Parameters of the reader that uses the model, as learning told them.
        chosen: Parameters that were chosen on validation.
        settings: Settings of the training.
        train: Counts of what became of the examples that are learnt from.
        validation: Counts of what became of the examples that are validated on.
        shared: Number of documents that are both learnt from and validated on.
        kept: Checkpoint that is kept: its learning rate, step, epoch and loss.
        counts: Counts of what became of the inputs.
        scores: Scores on validation, through the pipeline, by name.
        metric: Name of the score that parameters are chosen by, and checkpoints if `best_by` says
            so.
        curves: Rows of a `TuningResult`, by learning rate; where checkpoints are chosen by the
            metric, each one's `validation_score` too.
        signature: Signature of the pipeline on what is learnt.
    """

    pipeline: str
    base: str
    task: str
    learnt: str
    validated: str
    reader: str
    settings: Mapping[str, JSON]
    signature: Mapping[str, JSON]
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    chosen: Mapping[str, JSON] = field(default_factory=dict)
    train: Mapping[str, JSON] = field(default_factory=dict)
    validation: Mapping[str, JSON] = field(default_factory=dict)
    shared: int = 0
    kept: Mapping[str, JSON] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    metric: str = ""
    curves: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)


def write_pipeline(
    folder: Path, name: str, base: str, described: str, stages: Mapping[str, JSON]
) -> Path:
    """Writes a pipeline that extends one, with every stage written out as it was trained.

    Args:
        folder: Folder of the model; paths in it begin with `./`.
        name: Name of the trained pipeline.
        base: Name of the pipeline that it extends.
        described: Description of the trained pipeline.
        stages: Stages as the YAML has them.
    """
    declared: dict[str, Any] = {"extends": base, "description": described, **stages}
    write_yaml(folder / CONFIG, {"pipelines": {name: declared}})
    return folder / CONFIG


def write_record(folder: Path, record: TrainingRecord) -> None:
    """Writes the record for programs and the card for people."""
    write_json(folder / RECORD, {**asdict(record), **versions()})
    with atomically(folder / CARD) as file:
        file.write(_card(record))


def read_record(model: Path) -> TrainingRecord | None:
    """Returns the record of the training that made a model.

    Args:
        model: A folder.

    Returns:
        None if `train` did not make it.

    Raises:
        UserError: The record is damaged, or of another version of Leporello.
    """
    file = model.parent / RECORD
    if not file.exists():
        return None
    row: Any = read_json(file)
    try:
        record = TrainingRecord(
            **{f.name: row[f.name] for f in fields(TrainingRecord) if f.name in row}
        )
        return record if record.parameters.get("model") == f"./{model.name}" else None
    except (AttributeError, KeyError, TypeError):
        raise UserError(f"{file}: is damaged, or of another version of Leporello") from None


def _card(record: TrainingRecord) -> str:
    parts = [
        f"# {record.pipeline}",
        f"The reader `{record.reader}` of the pipeline `{record.base}`, trained by Leporello's"
        f" `train` on {record.learnt} of `{record.task}`: on what its own pipeline feeds it.",
        "## Data",
        _table({"": ["learnt", "validated on"], **_data(record)}),
        _validated(record),
        "## Scores",
        _scores(record),
        "## Training",
        _table({name: [value] for name, value in record.settings.items()}, head=False),
        *(_curve(rate, rows) for rate, rows in record.curves.items()),
        "`training.json` holds all of this, the versions, and the signature of config, sources,"
        " models and data. What holds for the data and the model that it was begun from, its"
        " licence and its biases, holds for this model too.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _data(record: TrainingRecord) -> dict[str, list[JSON]]:
    names = dict.fromkeys([*record.train, *record.validation])
    return {n: [record.train.get(n, ""), record.validation.get(n, "")] for n in names}


def _validated(record: TrainingRecord) -> str:
    if not record.validated:
        return "Nothing was validated on."
    shared = f"{record.shared} documents are on both sides: these scores flatter."
    return f"Validated on {record.validated}. {shared if record.shared else ''}".rstrip()


def _scores(record: TrainingRecord) -> str:
    parts = [_table({name: [value] for name, value in record.scores.items()}, head=False)]
    if record.kept:
        kept = ", ".join(f"{name} {value}" for name, value in record.kept.items())
        parts.append(f"Kept: {kept}.")
    if record.chosen:
        parts.append(f"Chosen on validation: {dict(record.chosen)}.")
    return "\n\n".join(filter(None, parts)) or "None were measured."


def _table(rows: Mapping[str, Sequence[JSON]], *, head: bool = True) -> str:
    if not rows:
        return ""
    lines = [f"| {' | '.join([name, *map(str, values)])} |" for name, values in rows.items()]
    columns = len(next(iter(rows.values()))) + 1
    first = [lines.pop(0)] if head else ["|" + " |" * columns]
    return "\n".join([*first, "|" + "---|" * columns, *lines])


def _curve(rate: str, rows: Sequence[Mapping[str, float]]) -> str:
    """Returns the losses as a line of bars each."""
    lines = [f"Learning rate {rate}:", ""]
    for name in ("loss", "validation_loss", "validation_score"):
        values = [row[name] for row in rows if name in row]
        line = f"    {name:<16}{values[0]:8.4f} {_bars(values)} {values[-1]:.4f}" if values else ""
        lines += filter(None, [line])
    return "\n".join(lines)


def _bars(values: Sequence[float]) -> str:
    step = max(1, -(-len(values) // _WIDTH))
    shown = values[::step]
    low, span = min(shown), max(shown) - min(shown) or 1.0
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1))] for value in shown)


def check_free(path: Path, *, update: bool) -> None:
    """Refuses a directory that holds something; another training may be replaced if told to."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    made_here = (path / RECORD).exists()
    if not (update and made_here):
        advice = "--update replaces it" if made_here else "it was not made by train"
        raise UserError(f"{path} is there already ({advice}); --out names another place")


@contextmanager
def written(path: Path) -> Generator[Path]:
    """Gives a directory to write in, which takes its place only when all of it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as temporary:
        folder = Path(temporary) / "made"
        folder.mkdir()
        yield folder
        if path.exists():
            path.rename(Path(temporary) / "replaced")
        folder.rename(path)
