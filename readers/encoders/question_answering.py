"""Transformers models that predict the start and end of an answer: BERT, RoBERTa and others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.errors import UserError
from leporello.readers.backends.pretrained import Tokens, quiet
from leporello.readers.backends.rows import padded
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.encoders.batched_model import BatchedModel, Segments, tensors
from leporello.readers.prompting.template import encodable

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class QuestionPrompt(Segments):
    """Tokens of a question, which attends globally, and of a segment of a passage.

    Attributes:
        marks: Whether an answer may begin or end with each token.
        null: Position of the token whose logits predict "no answer".
    """

    marks: tuple[bool, ...] = ()
    null: int = 0


@dataclass(frozen=True, slots=True)
class SpanReply(Generation):
    """Best span of a segment; the score is the sum of the logits of its start and end."""

    first: int = 0
    last: int = 0
    null: float = 0.0


@dataclass(frozen=True, slots=True)
class PassageWindow:
    """A segment of a passage, which the model reads with the question.

    Attributes:
        prompt: Prompt of the model.
        text: Text of the complete passage.
        offsets: Offsets of the prompt's tokens, in characters of the passage for its tokens.
    """

    prompt: QuestionPrompt
    text: str
    offsets: Sequence[tuple[int, int]]

    def part(self) -> str:
        """Returns the text of the segment."""
        marked = [index for index, mark in enumerate(self.prompt.marks) if mark]
        start, end = self.characters(marked[0], marked[-1])
        return self.text[start:end]

    def characters(self, first: int, last: int) -> tuple[int, int]:
        """Returns the start and end of tokens in the passage, without white space around them."""
        start, end = self.offsets[first][0], self.offsets[last][1]
        text = self.text[start:end]
        return end - len(text.lstrip()), start + len(text.rstrip())


class QuestionAnswering(BatchedModel):
    """Base of the readers with a question-answering head; they declare these fields."""

    _architecture = "AutoModelForQuestionAnswering"
    # Small differences of logits decide here, not the choice of one token (decision 19).
    dtype = "float32"

    stride: int
    max_answer_tokens: int
    null_threshold: float | None

    def _load_tokens(self) -> Tokens:
        # Only fast tokenizers map tokens to characters, and answers are slices of the source.
        tokens = super()._load_tokens()
        if not tokens.tokenizer.is_fast:
            raise UserError(
                f"model {self.model!r} has a slow tokenizer, which does not return the offsets of"
                " tokens; choose a model with a fast one (with a tokenizer.json)"
            )
        inputs = tokens.tokenizer("a", "b")["input_ids"]
        if self._has_null and tokens.tokenizer.cls_token_id not in inputs:
            raise UserError(
                f'model {self.model!r} gets no token such as [CLS], whose logits predict "no'
                ' answer"; set null_threshold to null, so that there is always an answer'
            )
        return tokens

    @property
    def _has_null(self) -> bool:
        return self.null_threshold is not None

    def _room(self, question: str) -> int:
        """Returns the maximum number of tokens per segment of a passage."""

        def ids() -> list[int]:
            flags = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
            tokens: list[int] = self.tokens.tokenizer(encodable(question), **flags)["input_ids"]
            return tokens

        question_tokens = self.tokens.once(ids, "question", question)
        added = self.tokens.tokenizer.num_special_tokens_to_add(pair=True)
        return int(self.max_input_tokens - len(question_tokens) - added)

    def _windows(self, question: str, text: str) -> list[PassageWindow]:
        """Returns the segments of a passage that have text, in order.

        Control tokens in the texts are read as plain text.
        """
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
        windows = [self._window(encoding, text) for encoding in encoded.encodings]
        return [window for window in windows if any(window.prompt.marks)]

    def _spans(self, prompts: Iterable[QuestionPrompt]) -> dict[QuestionPrompt, SpanReply]:
        """Returns the best span of each segment; equal segments are read once."""
        replies: dict[QuestionPrompt, SpanReply] = {}
        for prompt, reply in self.batching.read(dict.fromkeys(prompts), 1, 0, self._answer).items():
            assert isinstance(prompt, QuestionPrompt)
            assert isinstance(reply, SpanReply)
            replies[prompt] = reply
        return replies

    def _largest(self) -> ModelInput:
        ids = (self.tokens.padding,) * self.max_input_tokens
        types = (0,) * len(ids) if self._typed else ()
        return QuestionPrompt(ids, types=types, marks=(True,) * len(ids))

    @property
    def _typed(self) -> bool:
        """Whether the model was trained with token types."""
        return "token_type_ids" in self.tokens.tokenizer.model_input_names

    def _window(self, encoding: Any, text: str) -> PassageWindow:  # noqa: ANN401 -- of tokenizers
        tokenizer, ids = self.tokens.tokenizer, tuple(encoding.ids)
        owners, offsets = encoding.sequence_ids, encoding.offsets
        of_question = [index for index, owner in enumerate(owners) if owner == 0]
        prompt = QuestionPrompt(
            ids,
            types=tuple(encoding.type_ids) if self._typed else (),
            marks=tuple(
                # Not on a blank token: the answer begins and ends with visible text (decision 19).
                owner == 1 and bool(text[start:end].strip())
                for owner, (start, end) in zip(owners, offsets, strict=True)
            ),
            # Searched, since XLNet has its `[CLS]` at the end.
            null=ids.index(tokenizer.cls_token_id) if self._has_null else 0,
            seeing_all=of_question[-1] + 1 if of_question else 1,
        )
        return PassageWindow(prompt, text, offsets)

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


def best_spans(
    starts: torch.Tensor, ends: torch.Tensor, allowed: torch.Tensor, longest: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the best start and end of each row, by the sum of their logits.

    The earliest start wins among equal pairs, then the shortest pair.

    Args:
        starts: Logits of the first token, shape (rows, tokens).
        ends: Logits of the last token, shape (rows, tokens).
        allowed: Whether an answer may begin or end at a token, shape (rows, tokens).
        longest: Maximum number of tokens from the start to the end, including both.

    Returns:
        The sums, -inf if no pair is allowed; the first tokens; the last tokens. Each has the shape
        (rows,).
    """
    import torch

    longest = min(longest, starts.shape[1])
    # Question and special tokens have high logits too, but are not part of the source.
    starts = starts.masked_fill(~allowed, -torch.inf)
    ends = ends.masked_fill(~allowed, -torch.inf)
    # View of the ends that are possible for each start, shape (rows, tokens, longest).
    reached = torch.nn.functional.pad(ends, (0, longest - 1), value=-torch.inf).unfold(
        1, longest, 1
    )
    further = reached.argmax(-1)  # argmax, unlike max, is documented to return the first maximum
    sums = starts + reached.gather(-1, further[..., None]).squeeze(-1)
    first = sums.argmax(-1, keepdim=True)
    last = first + further.gather(-1, first)
    return sums.gather(-1, first).squeeze(-1), first.squeeze(-1), last.squeeze(-1)
