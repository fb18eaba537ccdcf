"""Reader that copies answers from the passages, with models trained on SQuAD and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import Output, Read
from leporello.models.calibration import TakesCalibration, calibrated
from leporello.readers.backends.pretrained import TRAINER, Tokens, quiet
from leporello.readers.backends.rows import padded
from leporello.readers.batching.batched_model import BatchedModel
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens
from leporello.readers.encoders.segments import (
    PassageWindow,
    QuestionPrompt,
    SpanReply,
    best_spans,
    tensors,
)
from leporello.readers.prompting.template import (
    encodable,
    passage_text,
    refuse_pairs,
    span_in,
    spans_of,
)
from leporello.text.typed.spans import best_typed

_NOTHING = -1e9  # score without any text to copy; JSON cannot represent infinity


@dataclass(frozen=True)
class Extractive(TakesCalibration, BatchedModel):
    """Copies the answer from the passages, with a model that predicts its start and end.

    Each passage is read separately with the question, in overlapping segments if it is long. The
    answer is the span with the highest sum of start and end logits in any segment of any passage.
    Other fields of an input are ignored.

    The score is this sum minus that of the prediction "no answer", as in SQuAD 2.0: inputs without
    an answer have scores below -`null_threshold`.

    Attributes:
        model: Path or hub id of a model for question answering with a fast tokenizer; the weights
            must be safetensors. They are run in float32.
        max_input_tokens: Size of the input window: question, segment and special tokens.
        stride: Number of tokens by which neighbouring segments of a passage overlap.
        max_answer_tokens: Maximum number of tokens per answer.
        null_threshold: Margin by which the lowest sum of "no answer" must exceed that of the best
            span for an input without an answer. With null, for models that were not trained on
            such questions, every input has an answer, whose score is its sum.
        unanswerable: Text of the output without an answer.
        calibration: JSON file that `train --calibrate` wrote, from scores to probabilities.
    """

    _architecture = "AutoModelForQuestionAnswering"
    trainer = TRAINER
    # Small differences of logits decide here, not the choice of one token (decision 19).
    dtype = "float32"

    model: ModelSource
    # SQuAD's usual window and overlap, with which its models were trained.
    max_input_tokens: Positive = 384
    stride: Count = 128
    max_answer_tokens: Positive = 30
    # 0 is SQuAD 2.0's rule. Models of SQuAD 1.1 need null: their `[CLS]` was never trained.
    null_threshold: float | None = 0.0
    unanswerable: str = ""
    batch_tokens: BatchTokens = 8192
    device: str = "auto"
    calibration: Path | None = None

    def __post_init__(self) -> None:
        # Each segment must add tokens, or the passage would never end.
        if self.stride >= self.max_input_tokens:
            raise ValueError(
                f"stride ({self.stride}) must be less than max_input_tokens"
                f" ({self.max_input_tokens}), since segments overlap by it"
            )

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input; the score is -1e9 without any text."""
        # The segments of all inputs form common batches, and equal ones are read once.
        windows = [self.windows(read) for read in inputs]
        replies: Any = self._replies(w.prompt for read_windows in windows for w in read_windows)
        outputs = [
            self._output(read, [(w, replies[w.prompt]) for w in read_windows])
            for read, read_windows in zip(inputs, windows, strict=True)
        ]
        return calibrated(outputs, self.calibration)

    def render(self, read: Read) -> str:
        """Returns the model's inputs: the question before each segment, stripped of blanks."""
        parts = (f"{read.question}\n{window.part()}" for window in self.windows(read))
        return "\n\n".join(parts)

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: all, since long ones are read in segments."""
        # Nothing is ever cut: long passages become more segments (decision 19).
        return len(read.passages)

    def windows(self, read: Read) -> list[PassageWindow]:
        """Returns all segments of an input."""
        _check(read)
        return [
            window
            for index, passage in enumerate(read.passages)
            if (text := passage_text(passage)).strip()
            for window in self._windows(read.question, index, text)
        ]

    def _output(self, read: Read, replies: Sequence[tuple[PassageWindow, SpanReply]]) -> Output:
        tokens = sum(len(window.prompt.tokens) for window, _ in replies)
        spans = spans_of(read.passages)
        # A low finite score, so that `ReadEach` prefers every other passage.
        if not replies:
            return Output(self.unanswerable, _NOTHING, read=spans, input_tokens=tokens)
        # Sums are comparable between segments, probabilities within one are not (decision 19).
        # Within a segment without an answer, the least bad span gets all of the probability.
        ranked = sorted(replies, key=lambda item: -item[1].score)
        window, best = ranked[0]
        score = best.score
        # The lowest sum of "no answer", since all segments but one have no answer (decision 19).
        if self.null_threshold is not None:
            # The difference compares over reads and documents; raw logits need not (decision 19).
            score -= min(reply.null for _, reply in replies)
        # A refusal keeps its score, so that it is below the score of every answer (decision 19).
        no_answer = Output(self.unanswerable, score, read=spans, input_tokens=tokens)
        if self.null_threshold is not None and -score > self.null_threshold:
            return no_answer
        start, end = window.characters(best.first, best.last)
        if read.schema:
            places = [(w.passage, *w.characters(reply.first, reply.last)) for w, reply in ranked]
            typed = best_typed(read.schema, places, [*map(passage_text, read.passages)])
            # No span of any segment has the type, which is the same as no answer.
            if typed is None:
                return no_answer
            (window, _), start, end = ranked[typed.rank], typed.start, typed.end
        span = span_in(read.passages[window.passage], start, end)
        return replace(no_answer, text=window.text[start:end], span=span)

    def _load_tokens(self) -> Tokens:
        # Only fast tokenizers map tokens to characters, and answers are slices of the source.
        tokens = super()._load_tokens()
        if not tokens.tokenizer.is_fast:
            raise UserError(
                f"model {self.model!r} has a slow tokenizer, which does not return the offsets of"
                " tokens; choose a model with a fast one (with a tokenizer.json)"
            )
        inputs = tokens.tokenizer("a", "b")["input_ids"]
        if self.null_threshold is not None and tokens.tokenizer.cls_token_id not in inputs:
            raise UserError(
                f'model {self.model!r} gets no token such as [CLS], whose logits predict "no'
                ' answer"; set null_threshold to null, so that each input has an answer'
            )
        return tokens

    def _room(self, question: str) -> int:
        """Returns the maximum number of tokens per segment of a passage."""
        added: int = self.tokens.tokenizer.num_special_tokens_to_add(pair=True)
        return self.max_input_tokens - self.tokens.count([question])[0] - added

    def _windows(self, question: str, passage: int, text: str) -> list[PassageWindow]:
        """Returns the segments of a passage that have text; control tokens are plain text."""
        # With less room than the overlap, segments would not advance.
        if (room := self._room(question)) <= self.stride:
            raise ValueError(
                f"the question leaves {max(room, 0)} of max_input_tokens={self.max_input_tokens}"
                f" tokens to the passages, whose segments overlap by stride={self.stride}; it is"
                " never cut: raise max_input_tokens, or lower stride"
            )
        encoded = self.tokens.tokenizer(
            encodable(question),
            encodable(text),
            # Only the passage is divided; a cut question would ask something else.
            truncation="only_second",
            max_length=self.max_input_tokens,
            stride=self.stride,
            return_overflowing_tokens=True,
            # A document's `</s>` is text, not the end of the passage (decision 19).
            split_special_tokens=True,
            verbose=False,
        )
        # One passage at a time, so that spans do not depend on other passages (decision 19).
        # Models were trained on one paragraph; spans across two would join unrelated words.
        windows = [self._window(encoding, passage, text) for encoding in encoded.encodings]
        return [window for window in windows if any(window.prompt.marks)]

    def _largest(self) -> ModelInput:
        ids = (self.tokens.padding,) * self.max_input_tokens
        return QuestionPrompt(ids, types=(0,) * len(ids), marks=(True,) * len(ids))

    def _window(self, encoding: Any, passage: int, text: str) -> PassageWindow:  # noqa: ANN401 -- of tokenizers
        tokenizer, ids = self.tokens.tokenizer, tuple(encoding.ids)
        owners, offsets = encoding.sequence_ids, encoding.offsets
        of_question = [index for index, owner in enumerate(owners) if owner == 0]
        prompt = QuestionPrompt(
            ids,
            types=tuple(encoding.type_ids),
            marks=tuple(
                # Not on a blank token: the answer begins and ends with visible text (decision 19).
                owner == 1 and bool(text[start:end].strip())
                for owner, (start, end) in zip(owners, offsets, strict=True)
            ),
            # Searched, since XLNet has its `[CLS]` at the end.
            null=ids.index(tokenizer.cls_token_id) if self.null_threshold is not None else 0,
            seeing_all=of_question[-1] + 1 if of_question else 1,
        )
        return PassageWindow(passage, prompt, text, offsets)

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        import torch

        prompts = [prompt for prompt in batch if isinstance(prompt, QuestionPrompt)]
        network = self._network
        with torch.inference_mode(), quiet():  # Longformer logs its padding
            logits = network(**tensors(network, prompts, self.tokens.padding, network.device))
            # Sums of half-precision logits tie often.
            starts, ends = logits.start_logits.float(), logits.end_logits.float()
            marks = padded([prompt.marks for prompt in prompts], 0, starts.device)[0].bool()
            # By sums of logits: they remain comparable between segments (decision 19).
            best = best_spans(starts, ends, marks, self.max_answer_tokens)
            nulls = torch.tensor([prompt.null for prompt in prompts], device=starts.device)[:, None]
            null = (starts.gather(1, nulls) + ends.gather(1, nulls)).squeeze(1)
        columns = (column.tolist() for column in (*best, null))
        return [
            SpanReply(score=score, first=first, last=last, null=null)
            for score, first, last, null in zip(*columns, strict=True)
        ]


def _check(read: Read) -> None:
    refuse_pairs([read])
    if read.choices and not read.schema:
        raise ValueError(
            "Extractive copies its answer from the passages and does not support choices; use"
            " Seq2Seq, CausalLM or Classifier"
        )
    if not read.question.strip():
        raise ValueError("Extractive needs a question, which this input does not have")
