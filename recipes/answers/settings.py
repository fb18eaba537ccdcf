"""The settings of a training, and their file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from leporello.core.protocols import Count, ModelSource, NonNegative, Positive, Share
from leporello.core.training import AboveZero, PartOf


@dataclass(frozen=True)
class Phase:
    """A part of the training.

    Attributes:
        tokens: Tokens to read.
        learning_rate: Learning rate of the encoder at its highest.
        decay: Whether the rate falls to zero by the phase's end; else it stays.
        weights: Share of what is read that comes from each set, in any unit; if empty, every set by
            its number of questions.
        shortest: Tokens that a window's text is cut to at least, where it has as many.
        longest: Tokens that a passage is cut to at most.
    """

    tokens: Positive
    learning_rate: AboveZero
    decay: bool = True
    weights: Mapping[str, NonNegative] | None = None
    shortest: Positive = 64
    longest: Positive = 256

    def __post_init__(self) -> None:
        if self.shortest > self.longest:
            raise ValueError(f"shortest ({self.shortest}) exceeds longest ({self.longest})")


@dataclass(frozen=True)
class AnswersSettings:
    """All that decides what a training gives.

    Attributes:
        base: Path or hub id of an encoder that transformers knows, or file of a BERT cross-encoder
            in ONNX, quantised to 8 bits.
        questions: Files of questions: rows as docs/training.md describes them, or HotpotQA's own
            JSON.
        phases: Parts of the training, in order.
        language: Language that is read, as ISO 639-1 has it; `ask` tells it of other documents.
        tokenizer: Path or hub id of the tokenizer, if not the base's own; for a base in ONNX its
            `tokenizer.json`.
        attention_heads: Number of attention heads of a base in ONNX, which does not tell it.
        exclude: Python file with `is_apart(text)`: questions with a passage that it knows are left
            out. It is run.
        validation: Share of the documents that is not trained on.
        retriever: Name of the retriever that finds passages without the answer.
        seed: Seed of the split, of draws and of new weights.
        batch: Tokens of a batch at most.
        warmup: Tokens over which the rate rises at the start of the first phase.
        head_rate: Learning rate of the heads, as a multiple of the encoder's.
        weight_decay: Weight decay of AdamW.
        window_loss: Weight in the loss of each window alone.
        label_loss: Weight in the loss of the label of a window.
        frozen: Number of layers, from the first, that are not trained.
        negatives: Probabilities of 0, 1, 2… windows without the answer beside a question.
        joined: Probability that such a passage stands beside the right one, in one window.
        joined_hops: The same for the sets in `hops`.
        hops: Names of the sets whose questions need two passages.
        unanswered: Probability that the window with the answer is left out.
        window: Tokens of a window at most, where the base has as many positions.
        snapshot_steps: Steps between snapshots of the weights.
        average: Number of last snapshots whose mean is shipped.
        checkpoint_seconds: Seconds between checkpoints.
        device: Device as torch names it; `auto` is CUDA where there is any, else the CPU.
        threads: Threads that compute.
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
    negatives: tuple[Share, ...] = (0.2, 0.6, 0.2)
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

    def __post_init__(self) -> None:
        if not self.questions or not self.phases:
            raise ValueError("questions and phases need at least one each")
        if not abs(sum(self.negatives) - 1) < 1e-6:  # noqa: PLR2004 -- rounding
            raise ValueError("negatives must sum to 1")
