"""Folder of a trained model, with its pipeline, record and card, written as one."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import atomically, read_json, write_json
from leporello.core.records import JSON
from leporello.jobs.manifest import versions

CONFIG, RECORD, CARD = "pipeline.yaml", "training.json", "README.md"


@dataclass
class TrainingRecord:
    """Inputs and results of a training."""

    pipeline: str
    base: str  # name of the pipeline before the training
    task: str
    learnt: str  # description of the training data, for people
    validated: str  # description of the validation data; empty without validation
    reader: str
    settings: Mapping[str, JSON]
    signature: Mapping[str, JSON]  # signature of the pipeline on the training data
    limit: int | None = None  # maximum number of examples of the training, and of the validation
    # Parameters with which the reader uses the model.
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    # Parameters that were chosen on the validation data.
    chosen: Mapping[str, JSON] = field(default_factory=dict)
    # Counts of the training examples, by outcome.
    train: Mapping[str, JSON] = field(default_factory=dict)
    # Counts of the validation examples, by outcome.
    validation: Mapping[str, JSON] = field(default_factory=dict)
    shared: int = 0  # number of documents in both the training and the validation data
    # Learning rate, step, epoch and loss of the checkpoint that became the model.
    kept: Mapping[str, JSON] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)  # counts of the inputs, by outcome
    # Scores of the complete pipeline on the validation data, by name.
    scores: Mapping[str, float] = field(default_factory=dict)
    # Name of the score that parameters are chosen by; with `best_by: metric`, also checkpoints.
    metric: str = ""
    # Rows of a `TuningResult`, by learning rate; with `best_by: metric`, also the
    # `validation_score` of each checkpoint.
    curves: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)


def write_record(folder: Path, record: TrainingRecord) -> None:
    """Writes the record for programs and the card for people."""
    write_json(folder / RECORD, {**asdict(record), **versions()})
    with atomically(folder / CARD) as file:
        file.write(_card(record))


def record_in(folder: Path) -> TrainingRecord | None:
    """Returns the training record in a folder, or None; raises UserError if it is damaged."""
    file = folder / RECORD
    if not file.exists():
        return None
    row: Any = read_json(file)
    try:
        record = TrainingRecord(
            **{f.name: row[f.name] for f in fields(TrainingRecord) if f.name in row}
        )
        record.parameters.get("model")  # a mapping in every record
    except (AttributeError, KeyError, TypeError):
        raise UserError(f"{file}: is damaged, or from another version of Leporello") from None
    return record


def _card(record: TrainingRecord) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # noqa: S701 -- Markdown
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined,
        trim_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    names = dict.fromkeys([*record.train, *record.validation])
    return environment.get_template("card.md.jinja").render(record=record, names=names)


def check_free(path: Path, *, update: bool) -> None:
    """Raises `UserError` unless a directory is empty, or is a model that `update` replaces."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    is_model = (path / RECORD).exists()
    if not (update and is_model):
        advice = "--update replaces it" if is_model else "train did not write it"
        raise UserError(f"{path} already exists ({advice}); --out names another folder")


@contextmanager
def new_folder(path: Path) -> Generator[Path]:
    """Yields a temporary directory, which is moved to `path` once it is completely written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, since a rename works only within one file system.
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as temporary:
        folder = Path(temporary) / "made"
        folder.mkdir()
        yield folder
        # Two renames instead of a removal first: a kill never leaves half of a model.
        if path.exists():
            path.rename(Path(temporary) / "replaced")
        folder.rename(path)
