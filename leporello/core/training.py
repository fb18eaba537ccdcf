"""How a reader is trained, and what passes between `train` and what fine-tunes its model."""

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
    """How a reader is trained.

    Those from `epochs` on are for models that are fine-tuned; a batch is what one step of the
    optimizer learns from.

    Attributes:
        preset: Named settings that stand in place of the defaults below.
        validation: The split that is validated on. If empty, `validation` where a model is
            fine-tuned or something is chosen; else nothing is validated on.
        holdout: The share of the training documents, drawn, that is validated on instead and not
            learnt from.
        references: Whether the first reference of an example is learnt, or all, one by one.
        choose: Parameters to choose by the task's first metric on what is validated on, once the
            reader has learnt: `combiner.threshold=0.3,0.5,0.7`, as `--set`; of equals the first.
        seed: Seed of draws, order, dropout and new weights.
        epochs: Passes over what is learnt.
        learning_rate: The highest learning rate; of several, the best by validation is kept.
        batch_size: Inputs in a batch.
        batch_tokens: Tokens in a batch, padding included, instead of inputs; 0 counts inputs.
        accumulate: Micro-batches that a batch is read in, over all devices.
        group_by_length: Whether inputs of about one length stand together in a micro-batch.
        betas: Decay rates of Adam's two moving means.
        epsilon: Term in Adam's denominator.
        weight_decay: Weight decay, decoupled from Adam's step (AdamW).
        warmup: The share of all steps over which the learning rate rises from 0.
        schedule: Course of the learning rate after warm-up.
        max_grad_norm: Gradients are scaled down to this norm; 0 leaves them.
        label_smoothing: Share of probability that is taken from the wanted token and spread over
            all others.
        precision: `bfloat16` and `float16` compute in these where it is safe; the weights that are
            learnt stay float32.
        gradient_checkpointing: Whether activations are computed again rather than kept: less
            memory.
        evaluate_steps: Steps between validations, each with a checkpoint; 0 is once an epoch.
        patience: Number of validations in a row without a lower loss that end the training; 0 never
            does.
        best_by: Measure by which a checkpoint, and a learning rate, is kept: the lowest loss on
            validation, or the highest first metric of the task through the whole pipeline.
        lora_rank: Rank of additions to the weights that are trained instead of these (LoRA, Hu et
            al. 2021), and merged into them in the end; 0 trains all weights.
        lora_alpha: Additions are scaled by lora_alpha / lora_rank.
        lora_dropout: Dropout on the inputs of the additions.
        lora_targets: Names of the layers that get them; none means all linear ones.
    """

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
    group_by_length: bool = True
    betas: tuple[PartOf, PartOf] = (0.9, 0.999)
    epsilon: AboveZero = 1e-8
    weight_decay: NonNegative = 0.0
    warmup: Share = 0.0
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    max_grad_norm: NonNegative = 1.0
    label_smoothing: PartOf = 0.0
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    gradient_checkpointing: bool = False
    evaluate_steps: Count = 0
    patience: Count = 0
    best_by: Literal["loss", "metric"] = "loss"
    lora_rank: Count = 0
    lora_alpha: Positive = 16
    lora_dropout: PartOf = 0.0
    lora_targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.validation and self.holdout:
            raise ValueError("give a split as `validation`, or a share as `holdout`, not both")
        if not self.rates:
            raise ValueError("learning_rate is an empty list")
        size = self.batch_tokens or self.batch_size
        if size % self.accumulate:
            name = "batch_tokens" if self.batch_tokens else "batch_size"
            raise ValueError(f"{name} ({size}) is no multiple of accumulate ({self.accumulate})")

    @property
    def choices(self) -> tuple[str, ...]:
        """What is chosen, each as `--set` has it."""
        return (self.choose,) if isinstance(self.choose, str) else self.choose

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates to try, in order, each once."""
        rate = self.learning_rate
        return tuple(dict.fromkeys(rate if isinstance(rate, tuple) else (rate,)))

    def at(self, rate: float) -> Training:
        """Returns the same with one learning rate."""
        return replace(self, learning_rate=rate)


@dataclass(frozen=True, slots=True)
class TrainingPairs:
    """Inputs as the reader gets them, and what it should answer to each."""

    inputs: Sequence[Read] = ()
    targets: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TuningJob:
    """What a model is fine-tuned on and how.

    Attributes:
        train: Pairs that are learnt.
        validation: Pairs that losses are measured on after each epoch; nothing of them is learnt.
        settings: Settings with one learning rate.
        directory: Folder for checkpoints. What a killed process left there is gone on from.
        step: Function that is called after every step.
    """

    train: TrainingPairs
    validation: TrainingPairs
    settings: Training
    directory: Path
    step: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that may be kept.

    Attributes:
        step: Step after which it was taken.
        epoch: Passes over what is learnt up to then.
        loss: Mean loss on validation.
        save: Function that writes the model, ready to be read with, into a folder that it makes.
    """

    step: int
    epoch: float
    loss: float
    save: Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class TuningResult:
    """What fine-tuning came to.

    Attributes:
        candidates: The checkpoint with the lowest loss; where the best is told by the task's
            metric, all of them.
        curve: Rows with `step`, `epoch` and `loss`, `learning_rate`, or `validation_loss`.
        counts: Number of inputs by what became of them: `learnt`, and what was left out or cut.
        curves: A folder with the curve for TensorBoard.
    """

    candidates: Sequence[Checkpoint]
    curve: Sequence[Mapping[str, float]]
    counts: Mapping[str, int]
    curves: Path
