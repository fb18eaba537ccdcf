"""Fine-tuning of a model on training examples with transformers' Trainer."""

# ruff: noqa: ARG002 -- the Trainer passes arguments that callbacks do not use

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils.tensorboard import SummaryWriter
from transformers import (
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.integrations.integration_utils import TensorBoardCallback
from transformers.trainer import TRAINER_STATE_NAME

from leporello.core.errors import UserError
from leporello.core.training import Checkpoint, Training, TrainingPairs, TuningJob, TuningResult
from leporello.readers.backends.pretrained import Architecture, Tokens, quiet
from leporello.readers.training.examples import Collator, TrainingExample, micro_batches
from leporello.readers.training.networks import BatchTrainer, load_network, with_lora

# A curve has 50 points however long the training is, so its log stays small.
_POINTS = 0.02  # distance of the points of a curve, as a share of all steps
# The Trainer's own `constant` ignores the warm-up.
_SCHEDULES = {"constant": "constant_with_warmup"}
CURVES = "curves"
_CURVE = {"loss": "loss", "learning_rate": "learning_rate", "eval_loss": "validation_loss"}


@dataclass(frozen=True)
class ModelToTune:
    """A model to fine-tune."""

    tokens: Tokens
    architecture: Architecture
    device: str
    collator: Collator
    labels: tuple[str, ...] = ()


def fine_tune(
    model: ModelToTune,
    job: TuningJob,
    prepare: Callable[[TrainingPairs, Counter[str]], Sequence[TrainingExample]],
) -> TuningResult:
    """Fine-tunes a model on examples, or resumes a killed training; raises UserError."""
    counts: Counter[str] = Counter()
    examples, validation = prepare(job.train, counts), prepare(job.validation, Counter())
    if not examples or not validation:
        purpose = "train" if not examples else "validate"
        raise UserError(f"no input of the training can be used to {purpose}: {dict(counts)}")
    history = _history(model, job, examples, validation)
    checkpoints = []
    for path, state in _complete_checkpoints(job.directory).items():
        [*_, row] = (row for row in state.log_history if "eval_loss" in row)
        save = partial(_save, model, job.settings, path)
        epoch, loss = round(row["epoch"], 4), row["eval_loss"]
        checkpoints.append(Checkpoint(state.global_step, epoch, loss, save))
    if job.settings.best_by == "loss":
        # Losses are known already, so one candidate suffices; a metric takes a run for each.
        checkpoints = sorted(checkpoints, key=lambda checkpoint: checkpoint.loss)[:1]
    return TuningResult(checkpoints, _curve(history), counts, job.directory / CURVES)


def _history(
    model: ModelToTune,
    job: TuningJob,
    examples: Sequence[TrainingExample],
    validation: Sequence[TrainingExample],
) -> Sequence[Mapping[str, float]]:
    """Trains, from the last checkpoint if there is one, and returns the log."""
    states = _complete_checkpoints(job.directory)
    last = next(reversed(states), None)
    state = states[last] if last else TrainerState()
    if last is None or not _is_over(state, job.settings.patience):
        with _without_warnings():
            trainer = _trainer(model, job, examples, validation, state.global_step + 1)
            trainer.train(resume_from_checkpoint=str(last) if last else None)
        state = trainer.state
    history: Sequence[Mapping[str, float]] = state.log_history
    return history


def _complete_checkpoints(folder: Path) -> dict[Path, TrainerState]:
    """Returns the complete checkpoints in the order of their steps; removes the others.

    The Trainer writes a checkpoint's files one by one, and its state last, so a checkpoint is
    complete if its state can be read. After a kill during a removal, the rest is neither the last
    checkpoint nor the best one.
    """
    states: dict[Path, TrainerState] = {}
    for path in folder.glob("checkpoint-*"):
        try:
            states[path] = TrainerState.load_from_json(str(path / TRAINER_STATE_NAME))
        except (OSError, ValueError):
            shutil.rmtree(path)
    return dict(sorted(states.items(), key=lambda pair: pair[1].global_step))


class _StepLogger(TrainerCallback):
    """Reports every step, and ends training once the validation loss does not fall any more.

    Losses are also logged with every checkpoint, so that a resumed training logs the same losses as
    one without interruption.
    """

    def __init__(self, report: Callable[[], None], patience: int) -> None:
        self._report, self._patience = report, patience

    def on_step_end(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        self._report()
        control.should_log |= control.should_save

    def on_epoch_end(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        control.should_log |= control.should_save

    def on_evaluate(
        self, args: object, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        control.should_training_stop |= _is_over(state, self._patience)


def _is_over(state: TrainerState, patience: int) -> bool:
    """Returns whether training ends: by its steps, or since the lowest validation loss is old."""
    # Computed from the log instead of counted, since a kill would lose a counter (decision 26).
    losses = [row["eval_loss"] for row in state.log_history if "eval_loss" in row]
    is_exhausted = patience and losses and len(losses) - 1 - losses.index(min(losses)) >= patience
    return bool(is_exhausted) or state.global_step >= state.max_steps


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppresses harmless warnings: peft uses an attribute that transformers renamed."""
    with quiet(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        yield


def _trainer(
    model: ModelToTune,
    job: TuningJob,
    examples: Sequence[TrainingExample],
    validation: Sequence[TrainingExample],
    step: int,
) -> Trainer:
    settings = job.settings
    network = load_network(model.tokens.model, model.architecture, settings.seed, model.labels)
    padding = model.tokens.padding
    # The cache of keys and values helps generation only; in training it just takes memory.
    network.config.use_cache = False
    trained: Any = with_lora(network, settings) if settings.lora_rank else network
    if settings.lora_rank and settings.gradient_checkpointing:
        # LoRA freezes the embeddings; without this, recomputed layers would get no gradient.
        trained.enable_input_require_grads()
    # `purge_step` removes points after the last checkpoint, so that a resumed curve does not run
    # backwards.
    writer: Any = SummaryWriter(str(job.directory / CURVES), purge_step=step)
    trainer = BatchTrainer(
        model=trained,
        args=_arguments(job, model.device),
        # The Trainer passes a list of one micro-batch.
        data_collator=lambda batches: model.collator(network, padding, batches[0]),
        train_dataset=micro_batches(examples, settings, shuffled=True),
        eval_dataset=micro_batches(validation, settings, shuffled=False),
        callbacks=[
            _StepLogger(job.step, settings.patience),
            TensorBoardCallback(writer),  # type: ignore[no-untyped-call]  # transformers leaves it so
        ],
    )
    trainer.remove_callback(PrinterCallback)  # it would print over Leporello's progress
    return trainer


def _arguments(job: TuningJob, device: str) -> TrainingArguments:
    settings = job.settings
    strategy = "steps" if settings.evaluate_steps else "epoch"
    try:
        arguments = TrainingArguments(
            output_dir=str(job.directory),
            # Each item of the data set is a micro-batch.
            per_device_train_batch_size=1,
            per_device_eval_batch_size=1,
            gradient_accumulation_steps=settings.accumulate,
            num_train_epochs=settings.epochs,
            learning_rate=settings.rates[0],
            lr_scheduler_type=_SCHEDULES.get(settings.schedule, settings.schedule),
            warmup_steps=settings.warmup,
            # AdamW also for T5, whose authors used AdaFactor: one optimizer for all.
            optim="adamw_torch",
            adam_beta1=settings.betas[0],
            adam_beta2=settings.betas[1],
            adam_epsilon=settings.epsilon,
            weight_decay=settings.weight_decay,
            bf16=settings.precision == "bfloat16",
            fp16=settings.precision == "float16",
            activation_checkpointing=settings.gradient_checkpointing,
            eval_strategy=strategy,
            save_strategy=strategy,
            # The last one to resume from, and the best one; a metric is computed for all.
            save_total_limit=2 if settings.best_by == "loss" else None,
            eval_steps=settings.evaluate_steps or None,
            # 500 is the Trainer's default; it is unused if the strategy is `epoch`.
            save_steps=settings.evaluate_steps or 500,
            # The loss; metrics choose later, with the complete pipeline (decision 26).
            metric_for_best_model="eval_loss",
            greater_is_better=False,
            logging_steps=_POINTS,
            prediction_loss_only=True,
            # Micro-batches are lists of examples, not rows with columns.
            remove_unused_columns=False,
            # For small tensors pinned memory gains nothing, and warns on a CPU.
            dataloader_pin_memory=False,
            disable_tqdm=True,
            report_to=[],
            use_cpu=is_cpu(device),
            seed=settings.seed,
            data_seed=settings.seed,
        )
    except (ValueError, ImportError) as error:
        raise UserError(f"settings of the training are not supported: {error}") from error
    if arguments.n_gpu > 1:
        arguments._n_gpu = 1  # several would divide a micro-batch
    return arguments


def is_cpu(device: str) -> bool:
    """Returns whether training on a device, as torch or a reader names it, uses the CPU."""
    return device == "cpu" or (device == "auto" and not torch.cuda.is_available())


def _curve(history: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    rows = []
    for row in history:
        point = {name: row[key] for key, name in _CURVE.items() if key in row}
        if point:
            rows.append({"step": row["step"], "epoch": row["epoch"], **point})
    return rows


def _save(model: ModelToTune, settings: Training, checkpoint: Path, folder: Path) -> None:
    """Writes a checkpoint as a complete model, without training state, and with LoRA merged."""
    source = model.tokens.model if settings.lora_rank else str(checkpoint)
    with _without_warnings():
        network: Any = load_network(source, model.architecture, settings.seed, model.labels)
        if settings.lora_rank:
            from peft import PeftModel

            network = PeftModel.from_pretrained(network, str(checkpoint)).merge_and_unload()
        # Off for training only: a reader would generate each token from the start.
        network.config.use_cache = True
        shutil.rmtree(folder, ignore_errors=True)
        network.save_pretrained(folder)
        model.tokens.tokenizer.save_pretrained(folder)
