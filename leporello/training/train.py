"""Trains the reader of a pipeline, and leaves a model and a config that uses it."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ruamel.yaml import YAML

from leporello.cache import Cache
from leporello.config import Built, PipelineSpec, TaskSpec, load_config
from leporello.directory import atomically, safe_name, write_json
from leporello.errors import UserError
from leporello.manifest import versions
from leporello.models import cache_directory
from leporello.progress import Progress
from leporello.records import JSON, Example
from leporello.signature import job_signature
from leporello.stages import Learns, Supervises, Task
from leporello.supply import examples_of, users_task
from leporello.training.supervision import Supervision, supervise

__all__ = ["Trained", "train"]

_CONFIG, _RECORD = "pipeline.yaml", "training.json"
_TOLD = 5  # of many, in a message


@dataclass(frozen=True)
class Trained:
    """A reader that was trained.

    Attributes:
        pipeline: The name of the pipeline that uses it.
        config: The file that declares it.
        task: What it was trained on.
        examples: Looked at.
        inputs: That the reader learnt from.
        skipped: Examples without references, or that failed.
    """

    pipeline: str
    config: Path
    task: str
    examples: int
    inputs: int
    skipped: int


def train(
    pipeline: str = "",
    task: str = "",
    *,
    config: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    split: str = "",
    limit: int | None = None,
    out: Path | None = None,
    update: bool = False,
    cached: bool = True,
) -> Trained:
    """Trains a pipeline's reader on what the pipeline itself would have it read.

    Args:
        pipeline: A name; the default one if empty. One point, if it sweeps.
        task: A name; the pipeline's own if empty.
        config: The user's own files, laid over the built-in one.
        overrides: As `--set`.
        split: Of the task; `train` if empty and the task has splits.
        limit: Examples at most.
        out: The model's directory; by default `models/PIPELINE+TASK`.
        update: Replace what lies there.
        cached: Whether to use and fill the cache.

    Raises:
        UserError: A mistake of the user's, or nothing to learn from.
    """
    names = [pipeline] if pipeline else []
    loaded = load_config(config, overrides, names)
    point = _only(loaded.select(names), "pipeline")
    chosen = _with_split(_only(loaded.select_tasks(point, [task] if task else []), "task"), split)
    stages = point.build()
    _check_trainable(point, stages)
    folder = (out or Path("models") / safe_name(f"{point.name}+{chosen.name}")).resolve()
    _check_free(folder, update=update)
    source = chosen.spec.build()
    with users_task(chosen.name):
        signature = job_signature(point, chosen, str(source.fingerprint()))
    gathered = _gather(stages, source, chosen, limit, Cache(cache_directory()) if cached else None)
    name = f"{point.name.partition('@')[0]}-trained"
    with _written(folder) as place:
        learnt = _learn(stages.reader, gathered, place)
        _write(place, name, point, learnt, {**_counts(gathered), "signature": dict(signature)})
    skipped = gathered.unanswered + gathered.failures.total()
    file = folder / _CONFIG
    return Trained(name, file, chosen.name, gathered.examples, len(gathered.inputs), skipped)


def _only(found: Sequence[Any], kind: str) -> Any:  # noqa: ANN401 -- a pipeline or a task
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:_TOLD])
        raise UserError(f"train takes one {kind}, and these are {len(found)}: {names}; name one")
    return found[0]


def _with_split(task: TaskSpec, split: str) -> TaskSpec:
    """Returns the task with the split to learn from: what is tested must not be learnt."""
    if not split and not task.has_splits:
        return task
    return task.with_split(split or "train")


def _check_trainable(point: PipelineSpec, stages: Built) -> None:
    wanted = {"reader": (Learns, "learn"), "combiner": (Supervises, "supervise")}
    for key, (protocol, method) in wanted.items():
        stage = getattr(stages, key)
        if not isinstance(stage, protocol):
            raise UserError(
                f"pipeline {point.name!r} cannot be trained: its {key} {type(stage).__name__} has"
                f" no method `{method}`; `list {key}s` shows which can be trained"
            )


def _check_free(path: Path, *, update: bool) -> None:
    """Refuses a directory that holds something; another training may be replaced if told to."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    made_here = (path / _RECORD).exists()
    if not (update and made_here):
        advice = "--update replaces it" if made_here else "it was not made by train"
        raise UserError(f"{path} is there already ({advice}); --out names another place")


@contextmanager
def _written(path: Path) -> Generator[Path]:
    """Gives a directory to write in, which takes its place only when all of it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as place:
        made = Path(place) / "made"
        made.mkdir()
        yield made
        if path.exists():
            path.rename(Path(place) / "replaced")
        made.rename(path)


def _gather(
    stages: Built, source: Task, task: TaskSpec, limit: int | None, cache: Cache | None
) -> Supervision:
    def kept(example: Example) -> Example:
        if cache:
            example.document.keep_on(cache)
        return example

    examples = map(kept, islice(examples_of(source, task.name), limit))
    with Progress(f"preparing {task.name}", limit) as progress:
        gathered = supervise(stages, examples, progress)
    if not gathered.inputs:
        raise UserError(f"task {task.name!r} gives nothing to learn from: {_account(gathered)}")
    return gathered


def _account(gathered: Supervision) -> str:
    """Says what became of the examples."""
    told = [f"{gathered.examples} examples", f"{gathered.unanswered} without references"]
    told += [
        f"{count} failed at the {stage} ({error})"
        for (stage, error), count in gathered.failures.most_common(_TOLD)
    ]
    return ", ".join(told)


def _learn(reader: Learns, gathered: Supervision, folder: Path) -> Mapping[str, JSON]:
    try:
        return reader.learn(gathered.inputs, gathered.targets, folder)
    except UserError:
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        told = f"{type(error).__name__}: {error}"
        raise UserError(f"{type(reader).__name__} cannot learn ({place}): {told}") from error


def _counts(gathered: Supervision) -> dict[str, JSON]:
    return {
        "examples": gathered.examples,
        "without references": gathered.unanswered,
        "failed": gathered.failures.total(),
        "inputs": len(gathered.inputs),
    }


def _write(
    folder: Path,
    name: str,
    point: PipelineSpec,
    learnt: Mapping[str, JSON],
    record: Mapping[str, JSON],
) -> None:
    """Writes what was trained on, and a pipeline with every stage written out."""
    resolved: dict[str, Any] = point.resolved()
    reader = {**resolved["reader"], **learnt}
    described = f"{point.name}, with a reader trained by `train`"
    declared = {**resolved, "description": described, "reader": reader}
    with atomically(folder / _CONFIG) as file:
        YAML(typ="safe", pure=True).dump({"pipelines": {name: declared}}, file)
    write_json(folder / _RECORD, {**record, **versions(), "reader": {**learnt}})
