"""Settings of the recipe `answers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from leporello.core.protocols import Count, ModelSource, NonNegative, Positive, Share
from leporello.core.training import AboveZero, PartOf


@dataclass(frozen=True)
class Phase:
    """A phase of the training.

    Attributes:
        tokens: Number of tokens to read.
        learning_rate: Maximum learning rate of the encoder.
        decay: Whether the rate falls to zero by the end of the phase; otherwise it stays constant.
        weights: Relative shares of the questions that are drawn from each set; if empty,
            proportional to the sets' numbers of questions.
        shortest: Minimum number of tokens of a window's text, if the passage has as many.
        longest: Maximum number of tokens of a passage.
        negatives: Probabilities of 0, 1, 2… windows without the answer per question.
        hardest: Number of windows without the answer that are trained on, those with the highest
            scores of the network; 0 is all of them.
    """

    tokens: Positive
    learning_rate: AboveZero
    decay: bool = True
    weights: Mapping[str, NonNegative] | None = None
    shortest: Positive = 64
    longest: Positive = 256
    negatives: tuple[Share, ...] = (0.2, 0.6, 0.2)
    hardest: Count = 0

    def __post_init__(self) -> None:
        if not abs(sum(self.negatives) - 1) < 1e-6:  # noqa: PLR2004 -- rounding
            raise ValueError("negatives must sum to 1")
        if self.shortest > self.longest:
            raise ValueError(f"shortest ({self.shortest}) exceeds longest ({self.longest})")


@dataclass(frozen=True)
class AnswersSettings:
    """Settings that determine the result of a training.

    Attributes:
        base: Path or hub id of an encoder of transformers, file of a BERT cross-encoder in ONNX,
            quantised to 8 bits, or folder that this recipe shipped, whose training is continued.
        questions: Files of questions: rows in the format of docs/training.md, or HotpotQA's JSON.
        phases: Phases of the training, in order.
        language: Language of the data (ISO 639-1); `ask` adds a note to documents in other
            languages.
        tokenizer: Path or hub id of the tokenizer; if empty, the base's. A base in ONNX needs its
            `tokenizer.json`.
        attention_heads: Number of attention heads of a base in ONNX, which does not store it.
        exclude: Python file with `is_apart(text)`, which is run: questions are left out if it
            returns true for one of their passages.
        validation: Share of the documents for validation.
        retriever: Name of the retriever that finds passages without the answer.
        seed: Seed of the split, of draws and of new weights.
        batch: Maximum number of tokens of a batch.
        warmup: Number of tokens over which the learning rate rises in the first phase.
        head_rate: Learning rate of the heads, as a multiple of the encoder's.
        weight_decay: Weight decay of AdamW.
        window_loss: Weight of the loss of single windows.
        label_loss: Weight of the loss of windows' labels.
        frozen: Number of first layers that are not trained.
        joined: Probability that a window has a passage without the answer beside the right one.
        joined_hops: The same probability for the sets in `hops`.
        hops: Names of the sets whose questions need two passages.
        unanswered: Probability that the window with the answer is left out.
        window: Maximum number of tokens of a window; the base may have fewer positions.
        snapshot_steps: Steps between snapshots of the weights.
        average: Number of last snapshots whose mean is shipped.
        checkpoint_seconds: Seconds between checkpoints.
        device: Device of torch; `auto` is CUDA if available, otherwise the CPU.
        threads: Number of threads.
        precision: Precision of the products; bfloat16 is several times as fast on processors with
            units for it.
    """

    base: ModelSource
    questions: tuple[Path, ...]
    phases: tuple[Phase, ...]
    language: str = ""
    tokenizer: ModelSource = ""
    attention_heads: Positive = 12
    exclude: Path | None = None
    validation: PartOf = 0.03
    retriever: str = "BM25"
    seed: Count = 1
    batch: Positive = 2500
    warmup: Positive = 150_000
    head_rate: AboveZero = 4.0
    weight_decay: NonNegative = 0.01
    window_loss: NonNegative = 0.5
    label_loss: NonNegative = 0.5
    frozen: Count = 0
    joined: Share = 0.1
    joined_hops: Share = 0.6
    hops: tuple[str, ...] = ()
    unanswered: Share = 0.06
    window: Positive = 512
    snapshot_steps: Positive = 50
    average: Positive = 1
    checkpoint_seconds: NonNegative = 180.0
    device: str = "auto"
    threads: Positive = 1
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        if not self.questions or not self.phases:
            raise ValueError("questions and phases need at least one entry each")
