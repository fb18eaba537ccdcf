"""Answers copied from the passages: models trained on SQuAD and its like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import Output, Read
from leporello.models.calibration import TakesCalibration, calibrated
from leporello.readers.batching.token_budget import BatchTokens
from leporello.readers.encoders.question_answering import (
    PassageWindow,
    QuestionAnswering,
    SpanReply,
)
from leporello.readers.prompting.template import passage_text, refuse_pairs, span_in, spans_of
from leporello.text.typed.spans import best_typed

_NOTHING = -1e9  # the score where there was nothing to copy; JSON has no infinity


@dataclass(frozen=True)
class Extractive(TakesCalibration, QuestionAnswering):
    """Copies the answer out of the passages, with a model that marks where it begins and ends.

    Each passage is read with the question, on its own, in overlapping windows if it is long; the
    answer is the best pair of a start and an end in all of them, by the sum of their logits. It
    lies in one window of one passage. Of an input only question and passages are read.

    The score is that sum minus the one of no answer, by which SQuAD 2.0's rule decides too: inputs
    without an answer have scores below -`null_threshold`.

    Attributes:
        model: Path or hub id of a model for question answering with a fast tokenizer; the weights
            must be safetensors. They are run in float32.
        max_input_tokens: Tokens of the window: question, part of a passage and special tokens.
        stride: Number of tokens by which neighbouring windows of a passage overlap.
        max_answer_tokens: Number of tokens of an answer at most.
        null_threshold: Margin: there is no answer if the logits of none, the lowest of all windows,
            exceed those of the best span by more than this; null for models that were not trained
            on questions without an answer: there always is one, and the score is its sum alone.
        unanswerable: Text where there is no answer, or nothing to copy it from.
        batch_tokens: Tokens of a micro-batch, padding included; `auto` is as many as the GPU's
            memory holds, and 4096 on a CPU.
        device: Device as torch names it; `auto` is CUDA where there is any, else the CPU.
        calibration: JSON file that `train --calibrate` wrote, from scores to probabilities.
    """

    model: ModelSource
    max_input_tokens: Positive = 384
    stride: Count = 128
    max_answer_tokens: Positive = 30
    null_threshold: float | None = 0.0
    unanswerable: str = ""
    batch_tokens: BatchTokens = 8192
    device: str = "auto"
    calibration: Path | None = None

    def __post_init__(self) -> None:
        if self.stride >= self.max_input_tokens:
            raise ValueError(
                f"stride ({self.stride}) must be less than max_input_tokens"
                f" ({self.max_input_tokens}): windows overlap by it"
            )

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order; the score is -1e9 where nothing was there.

        Equal windows are read once.

        Raises:
            ValueError: An input has choices, a pair, no question, or one that fills the window.
        """
        windows = [self.windows(read) for read in inputs]
        prompts = (window.prompt for own_windows in windows for _, window in own_windows)
        replies = self._spans(prompts)
        outputs = [
            self._output(read, [(n, w, replies[w.prompt]) for n, w in own_windows])
            for read, own_windows in zip(inputs, windows, strict=True)
        ]
        return calibrated(outputs, self.calibration)

    def render(self, read: Read) -> str:
        """Returns what the model is given: of each window the question and its part of a passage.

        Parts begin and end where an answer could; white space around them is not shown.
        """
        parts = (f"{read.question}\n{window.part()}" for _, window in self.windows(read))
        return "\n\n".join(parts)

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: all, for each is read in as many windows."""
        return len(read.passages)

    @property
    def trainer(self) -> str:
        """What fine-tunes the model; see `FineTunes`."""
        return "leporello.readers.training.fine_tuning:extractive"

    def windows(self, read: Read) -> list[tuple[int, PassageWindow]]:
        """Returns all windows of an input, each with its passage's place; blank ones have none."""
        _check(read)
        return [
            (index, window)
            for index, passage in enumerate(read.passages)
            if (text := passage_text(passage)).strip()
            for window in self._windows(read.question, text)
        ]

    def _output(
        self, read: Read, replies: Sequence[tuple[int, PassageWindow, SpanReply]]
    ) -> Output:
        tokens = sum(len(window.prompt.tokens) for _, window, _ in replies)
        spans = spans_of(read.passages)
        if not replies:
            return Output(self.unanswerable, _NOTHING, read=spans, input_tokens=tokens)
        # By sums: a probability would hide that a window has nothing to offer (decision 19).
        ranked = sorted(replies, key=lambda item: -item[2].score)
        index, window, best = ranked[0]
        score = best.score
        # The lowest null: every window but the right one says that there is none (decision 19).
        if self.null_threshold is not None:
            score -= min(reply.null for _, _, reply in replies)
        nothing = Output(self.unanswerable, score, read=spans, input_tokens=tokens)
        if self.null_threshold is not None and -score > self.null_threshold:
            return nothing
        start, end = window.characters(best.first, best.last)
        if read.schema:
            places = [(n, *w.characters(reply.first, reply.last)) for n, w, reply in ranked]
            found = best_typed(read.schema, places, [*map(passage_text, read.passages)])
            if found is None:
                return nothing
            (index, window, _), start, end = ranked[found.rank], found.start, found.end
        span = span_in(read.passages[index], start, end)
        return replace(nothing, text=window.text[start:end], span=span)


def _check(read: Read) -> None:
    refuse_pairs([read])
    if read.choices and not read.schema:
        raise ValueError(
            "Extractive copies its answer from the passages and cannot choose among choices:"
            " Seq2Seq, CausalLM and Classifier can"
        )
    if not read.question.strip():
        raise ValueError("Extractive answers questions, and this input has none")
