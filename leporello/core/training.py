"""Settings of training, and the records that `train` exchanges with the trainer of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Lt

from leporello.core.protocols import Count, NonNegative, Positive, Share
from leporello.core.records import Read

AboveZero: TypeAlias = Annotated[float, Gt(0)]
PartOf: TypeAlias = Annotated[float, Ge(0), Lt(1)]


@dataclass(frozen=True)
class Training:
    """Settings for the training of a reader.

    Settings from `epochs` on apply to models that are fine-tuned; a batch is the input of one
    optimizer step.

    Attributes:
        pipeline: Name of the pipeline to train instead, on its own task; this pipeline then reads
            with its model.
        preset: Name of settings that replace the defaults below.
        validation: Split for validation. If empty, the split `validation` when a model is
            fine-tuned or a parameter is chosen; otherwise validation is skipped.
        holdout: Share of the training documents that is drawn for validation instead of training.
        references: Whether to train on the first reference of an example, or on each of them.
        choose: Parameters with candidate values, `combiner.threshold=0.3,0.5,0.7`, as in `--set`.
            After training, the task's first metric on the validation data selects a value; the
            first of equal values wins.
        seed: Seed of draws, order, dropout and new weights.
        epochs: Number of passes over the training data.
        learning_rate: Peak learning rate; of several, validation selects the best.
        batch_size: Number of inputs in a batch.
        batch_tokens: Number of tokens in a batch, padding included, instead of `batch_size`; 0 uses
            `batch_size`.
        accumulate: Number of micro-batches per batch; one has inputs of similar length.
        betas: Decay rates of Adam's two moving means.
        epsilon: Term in Adam's denominator.
        weight_decay: Weight decay, decoupled from Adam's step (AdamW).
        warmup: Share of all steps in which the learning rate rises from 0.
        schedule: Course of the learning rate after warm-up.
        precision: Number format of the computation where it is safe; trained weights remain
            float32.
        gradient_checkpointing: Whether to recompute activations instead of storing them, which
            saves memory.
        evaluate_steps: Number of steps between validations, each with a checkpoint; 0 validates
            once per epoch.
        patience: Number of consecutive validations without a lower loss after which training ends;
            0 disables the limit.
        best_by: Criterion for the best checkpoint and learning rate: the lowest validation loss, or
            the highest first metric of the task with the complete pipeline.
        lora_rank: Rank of low-rank additions to all linear layers, which are trained instead of the
            weights and then merged into them (LoRA, Hu et al. 2021); 0 trains all weights.
        lora_alpha: Scale of the additions, as lora_alpha / lora_rank.
    """

    pipeline: str = ""
    preset: str = ""
    validation: str = ""
    holdout: PartOf = 0.0
    references: Literal["first", "all"] = "first"
    choose: str | tuple[str, ...] = ()
    seed: Count = 0
    epochs: AboveZero = 3.0
    learning_rate: AboveZero | tuple[AboveZero, ...] = 5e-5
    batch_size: Positive = 16
    batch_tokens: Count = 0
    accumulate: Positive = 1
    betas: tuple[PartOf, PartOf] = (0.9, 0.999)
    epsilon: AboveZero = 1e-8
    weight_decay: NonNegative = 0.0
    warmup: Share = 0.0
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    gradient_checkpointing: bool = False
    evaluate_steps: Count = 0
    patience: Count = 0
    best_by: Literal["loss", "metric"] = "loss"
    lora_rank: Count = 0
    lora_alpha: Positive = 16

    def __post_init__(self) -> None:
        if self.validation and self.holdout:
            raise ValueError("give a split as `validation`, or a share as `holdout`, not both")
        if not self.rates:
            raise ValueError("learning_rate is an empty list; give at least one value")
        size = self.batch_tokens or self.batch_size
        # Otherwise an optimizer step would be smaller than the settings declare.
        if size % self.accumulate:
            name = "batch_tokens" if self.batch_tokens else "batch_size"
            raise ValueError(f"{name} ({size}) is not a multiple of accumulate ({self.accumulate})")

    @property
    def choices(self) -> tuple[str, ...]:
        """Parameters with the values to choose from, each in the form of `--set`."""
        return (self.choose,) if isinstance(self.choose, str) else self.choose

    @property
    def rates(self) -> tuple[float, ...]:
        """Learning rates to try, in order, without duplicates."""
        rate = self.learning_rate
        return tuple(dict.fromkeys(rate if isinstance(rate, tuple) else (rate,)))

    def at(self, rate: float) -> Training:
        """Returns the settings with one learning rate."""
        return replace(self, learning_rate=rate)


@dataclass(frozen=True, slots=True)
class TrainingPairs:
    """Inputs as a reader receives them, and their target outputs."""

    inputs: Sequence[Read] = ()
    targets: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TuningJob:
    """Data and settings of a fine-tuning."""

    train: TrainingPairs
    validation: TrainingPairs  # pairs on which the loss is measured at each validation
    settings: Training  # settings with one learning rate
    directory: Path  # folder for checkpoints; training resumes from those of an interrupted process
    step: Callable[[], None]  # function that is called after every step


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that may become the result."""

    step: int  # number of steps before it
    epoch: float  # number of passes over the training data before it
    loss: float  # mean validation loss
    save: Callable[[Path], None]  # writes the model into a new folder, ready for a reader


@dataclass(frozen=True, slots=True)
class TuningResult:
    """Result of a fine-tuning."""

    candidates: Sequence[Checkpoint]  # one with the lowest loss; all if the task's metric decides
    # Rows with `step`, `epoch` and `loss`, `learning_rate`, or `validation_loss`.
    curve: Sequence[Mapping[str, float]]
    # Number of inputs by outcome: `learnt`, and those that were left out or cut.
    counts: Mapping[str, int]
    curves: Path  # folder with the curve for TensorBoard
