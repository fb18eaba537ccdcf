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
    """A phase of the training."""

    tokens: Positive  # number of tokens to read
    learning_rate: AboveZero  # maximum learning rate of the encoder
    # Whether the rate falls to zero by the end of the phase; otherwise it stays constant.
    decay: bool = True
    # Relative shares of the questions that are drawn from each set; if empty, proportional to the
    # sets' numbers of questions.
    weights: Mapping[str, NonNegative] | None = None
    # Minimum number of tokens of a window's text, if the passage has as many.
    shortest: Positive = 64
    longest: Positive = 256  # maximum number of tokens of a passage
    # Probabilities of 0, 1, 2… windows without the answer per question.
    negatives: tuple[Share, ...] = (0.2, 0.6, 0.2)
    # Number of windows without the answer that are trained on, those with the highest scores of the
    # network; 0 is all of them.
    hardest: Count = 0

    def __post_init__(self) -> None:
        if not abs(sum(self.negatives) - 1) < 1e-6:  # noqa: PLR2004 -- rounding
            raise ValueError("negatives must sum to 1")
        if self.shortest > self.longest:
            raise ValueError(f"shortest ({self.shortest}) exceeds longest ({self.longest})")


@dataclass(frozen=True)
class AnswersSettings:
    """Settings that determine the result of a training."""

    # Path or hub id of an encoder of transformers, file of a BERT cross-encoder in ONNX, quantised
    # to 8 bits, or folder that this recipe shipped, whose training is continued.
    base: ModelSource
    # Files of questions: rows in the format of docs/training.md, or HotpotQA's JSON.
    questions: tuple[Path, ...]
    phases: tuple[Phase, ...]  # phases of the training, in order
    # Language of the data (ISO 639-1); `ask` adds a note to documents in other languages.
    language: str = ""
    # Path or hub id of the tokenizer; if empty, the base's. A base in ONNX needs its
    # `tokenizer.json`.
    tokenizer: ModelSource = ""
    # Number of attention heads of a base in ONNX, which does not store it.
    attention_heads: Positive = 12
    # Python file with `is_apart(text)`, which is run: questions are left out if it returns true for
    # one of their passages.
    exclude: Path | None = None
    validation: PartOf = 0.03  # share of the documents for validation
    retriever: str = "BM25"  # name of the retriever that finds passages without the answer
    seed: Count = 1  # seed of the split, of draws and of new weights
    batch: Positive = 2500  # maximum number of tokens of a batch
    # Number of tokens over which the learning rate rises in the first phase.
    warmup: Positive = 150_000
    head_rate: AboveZero = 4.0  # learning rate of the heads, as a multiple of the encoder's
    weight_decay: NonNegative = 0.01  # weight decay of AdamW
    window_loss: NonNegative = 0.5  # weight of the loss of single windows
    label_loss: NonNegative = 0.5  # weight of the loss of windows' labels
    frozen: Count = 0  # number of first layers that are not trained
    # Probability that a window has a passage without the answer beside the right one.
    joined: Share = 0.1
    joined_hops: Share = 0.6  # the same probability for the sets in `hops`
    hops: tuple[str, ...] = ()  # names of the sets whose questions need two passages
    unanswered: Share = 0.06  # probability that the window with the answer is left out
    # Maximum number of tokens of a window; the base may have fewer positions.
    window: Positive = 512
    snapshot_steps: Positive = 50  # steps between snapshots of the weights
    average: Positive = 1  # number of last snapshots whose mean is shipped
    checkpoint_seconds: NonNegative = 180.0  # seconds between checkpoints
    device: str = "auto"  # device of torch; `auto` is CUDA if available, otherwise the CPU
    threads: Positive = 1  # number of threads
    # Precision of the products; bfloat16 is several times as fast on processors with units for it.
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        if not self.questions or not self.phases:
            raise ValueError("questions and phases need at least one entry each")
