"""Run of a training: gathers the inputs, trains, validates, and writes the trained pipeline."""

import dataclasses
import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from leporello.config import Pipeline, PipelineSpec, load_config
from leporello.core.environment.user_code import user_code_errors
from leporello.core.errors import UserError
from leporello.core.protocols import Task
from leporello.core.records import JSON
from leporello.core.training import Checkpoint, Training, TuningResult
from leporello.core.yaml.scalars import write_yaml
from leporello.core.yaml.tree import ConfigSource
from leporello.engine.progress import Progress
from leporello.engine.task_examples import examples_of, task_errors
from leporello.jobs.manifest import job_signature
from leporello.training.fine_tuning import checkpoint_folder, tune_at_rates, tuner_of
from leporello.training.model_card import (
    CONFIG,
    TrainingRecord,
    new_folder,
    record_in,
    write_record,
)
from leporello.training.splits import RowTraining, Splits
from leporello.training.training_pairs import Supervision, supervise

_MODEL = "model"
_SCORE = "validation_score"


@dataclass(frozen=True)
class TrainingRun:
    """Carries out a training whose settings have been checked."""

    point: PipelineSpec  # pipeline whose reads are learned, a single point of it if it sweeps
    stages: Pipeline
    settings: Training
    splits: Splits  # training and validation data
    target: PipelineSpec  # pipeline that will use the model, a single point of it if it sweeps
    base: str  # its name, without the suffix of a point
    place: RowTraining | None  # columns of a suite's row for which it is trained; None for no row
    folder: Path
    config: tuple[ConfigSource, ...]

    @property
    def name(self) -> str:
        """Name of the trained pipeline."""
        base = self.base.partition("@")[0]
        return self.place.trained_pipeline if self.place else f"{base}-trained"

    def finished(self) -> TrainingRecord | None:
        """Returns the record of a training with the same settings, sources, models and data."""
        record = record_in(self.folder)
        if record is None:
            return None
        compared = attrgetter("pipeline", "task", "settings", "signature", "limit")
        new = json.loads(json.dumps(compared(self._new_record())))
        return record if [*compared(record)] == new else None

    def train(self) -> TrainingRecord:
        """Trains, writes the model, and returns the record."""
        record = self._new_record()
        learnt = self._gather_pairs(self.splits.train, f"preparing {record.task}")
        record.train = learnt.counts()
        if tuner_of(self.stages.reader):
            self._fine_tune(record, learnt)
        else:
            reader = self.stages.reader
            with new_folder(self.folder) as folder:
                with user_code_errors(f"{type(reader).__name__}.learn"):
                    record.parameters = reader.learn(learnt.inputs, learnt.targets, folder)
                self._finish(record, folder)
        return record

    def _new_record(self) -> TrainingRecord:
        splits = self.splits
        with task_errors(splits.task.name):
            data = str(splits.train.fingerprint())
        # The same signature as in runs: what changes their results also starts a training over.
        signature = job_signature(self.point, splits.task, data)
        split: Any = splits.task.spec.params.get("split")
        return TrainingRecord(
            self.name,
            self.base,
            splits.task.name,
            f"split {split}" if split else "all examples",
            splits.validated,
            type(self.stages.reader).__name__,
            json.loads(json.dumps(asdict(self.settings))),
            signature,
            limit=splits.limit,
        )

    def _gather_pairs(self, source: Task, title: str) -> Supervision:
        limit = self.splits.limit
        examples = islice(examples_of(source, self.splits.task.name), limit)
        with Progress(title, limit) as progress:
            use_all, cache = self.settings.references == "all", self.splits.cache
            supervision = supervise(self.stages, examples, progress, cache, all_references=use_all)
        if not supervision.inputs:
            name, account = self.splits.task.name, supervision.account()
            raise UserError(f"task {name!r} has no examples to train on: {account}")
        return supervision

    # -- fine-tuned models ---------------------------------------------------------------------

    def _fine_tune(self, record: TrainingRecord, learnt: Supervision) -> None:
        assert self.splits.validation is not None
        validated = self._gather_pairs(self.splits.validation, f"preparing {self.splits.validated}")
        record.validation = validated.counts()
        # By content: the same contract under two ids would make the scores too good.
        record.shared = len(learnt.documents & validated.documents)
        with checkpoint_folder(self.folder, _checkpoint_settings(record)) as checkpoints:
            sides = (learnt.pairs, validated.pairs)
            results = tune_at_rates(self.stages.reader, self.settings, *sides, checkpoints)
            with new_folder(self.folder) as folder:
                self._keep_best(record, results, folder)
                self._finish(record, folder)

    def _keep_best(
        self, record: TrainingRecord, results: Mapping[float, TuningResult], folder: Path
    ) -> None:
        """Saves the best checkpoint as the model, and the curves of all learning rates."""
        candidates = [
            _ScoredCheckpoint(rate, checkpoint, self._score(rate, checkpoint, folder))
            for rate, result in results.items()
            for checkpoint in result.candidates
        ]
        best = min(candidates, key=_rank)
        best.checkpoint.save(folder / _MODEL)
        description: dict[str, JSON] = {"learning rate": best.rate, "step": best.checkpoint.step}
        description |= {"epoch": best.checkpoint.epoch, "validation loss": best.checkpoint.loss}
        record.kept = description if best.score is None else {**description, "score": best.score}
        record.parameters = {"model": f"./{_MODEL}"}
        record.counts = dict(results[best.rate].counts)
        curves: dict[str, Sequence[Mapping[str, float]]] = {}
        for rate, result in results.items():
            place = shutil.copytree(result.curves, folder / "curves" / f"rate-{rate:g}")
            scored = [
                {"step": c.checkpoint.step, "epoch": c.checkpoint.epoch, _SCORE: c.score}
                for c in candidates
                if c.rate == rate and c.score is not None
            ]
            curves[f"{rate:g}"] = [*result.curve, *scored]
            if scored:
                _write_scores(place, self.splits.headline, scored)
        record.curves = curves

    def _score(self, rate: float, checkpoint: Checkpoint, folder: Path) -> float | None:
        """Returns the pipeline's score with a checkpoint; None if losses choose the best."""
        if self.settings.best_by == "loss":
            return None
        # Each checkpoint has its own folder, since each process loads a path only once.
        model = folder / f"scored-{rate:g}-{checkpoint.step}"
        checkpoint.save(model)
        point = self.point
        reader = point.stages["reader"]
        params = {**reader.params, "model": str(model)}
        stages = {**point.stages, "reader": dataclasses.replace(reader, params=params)}
        _, scores = self.splits.best([dataclasses.replace(point, stages=stages)])
        shutil.rmtree(model)
        return round(self.splits.score(scores), 4)

    # -- results -------------------------------------------------------------------------------

    def _finish(self, record: TrainingRecord, folder: Path) -> None:
        """Writes the pipeline, validates it, makes the declared choices, and writes the record."""
        resolved: dict[str, Any] = self.target.resolved()
        stages = {**resolved, "reader": {**resolved["reader"], **record.parameters}}
        file = self._write_config(folder, stages)
        if self.splits.validation is not None:
            loaded = load_config([*self.config, file], self.settings.choices, [self.name])
            best, result = self.splits.best(loaded.select([self.name]))
            record.scores = {name: round(score, 4) for name, score in result.scores.items()}
            record.metric = self.splits.headline
            if self.settings.choices:
                pairs = best.name.partition("@")[2] or ",".join(self.settings.choices)
                record.chosen = {"parameters": pairs}
            self._write_config(folder, _relative(best.resolved(), folder))
        write_record(folder, record)

    def _write_config(self, folder: Path, stages: Mapping[str, JSON]) -> Path:
        """Writes the config of the trained pipeline with these stages; returns its file."""
        described = f"{self.target.name}, with a reader trained by `train`"
        declared: Any = {"extends": self.base, "description": described, **stages}
        suites = {"suites": self.place.declaration()} if self.place else {}
        write_yaml(folder / CONFIG, {"pipelines": {self.name: declared}, **suites})
        return folder / CONFIG


@dataclass(frozen=True)
class _ScoredCheckpoint:
    """A checkpoint that may become the model."""

    rate: float  # learning rate
    checkpoint: Checkpoint
    score: float | None  # score of the complete pipeline; None if losses choose the best


def _rank(candidate: _ScoredCheckpoint) -> tuple[float, float]:
    """Returns a key that is lowest for the highest score, then for the lowest loss."""
    loss = candidate.checkpoint.loss
    # NaN counts as infinite: comparisons with it are false, so the order would decide.
    return -(candidate.score or 0.0), math.inf if math.isnan(loss) else loss


def _checkpoint_settings(record: TrainingRecord) -> JSON:
    # `choose` acts after the training, so another list of candidates keeps the checkpoints.
    return {
        "settings": {name: value for name, value in record.settings.items() if name != "choose"},
        "signature": dict(record.signature),
        "limit": record.limit,
        "train": record.train["sha256"],
        "validation": record.validation["sha256"],
    }


def _relative(value: Any, folder: Path) -> Any:  # noqa: ANN401 -- any JSON
    """Returns JSON with absolute paths within a folder replaced by relative ones."""
    if isinstance(value, dict):
        return {key: _relative(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [_relative(item, folder) for item in value]
    # Relative paths, so a model's folder can be moved or shared.
    inside = isinstance(value, str) and value.startswith(f"{folder.resolve()}/")
    return f"./{Path(value).relative_to(folder.resolve())}" if inside else value


def _write_scores(folder: Path, metric: str, points: Sequence[Mapping[str, float]]) -> None:
    """Writes the scores of checkpoints for TensorBoard, beside the losses."""
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = SummaryWriter
    with writer(str(folder)) as file:
        for point in points:
            file.add_scalar(f"eval/{metric}", point[_SCORE], int(point["step"]))
