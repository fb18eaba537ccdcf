"""How likely a generative model finds a passage: GPT-2, Llama, SmolLM and their like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from leporello.core.errors import UserError
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Output, Read
from leporello.readers.backends.padding import padded
from leporello.readers.backends.pretrained import DType, Tokens, check_positions, load_model
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens, MemoryProbe, TokenBudget
from leporello.readers.encoders.token_ids import Passages, output_of

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_MOST = 64  # inputs that a window has, and more


@dataclass(frozen=True)
class LogLikelihood:
    """Scores a passage by its log-likelihood under a decoder-only model, tuned to chat or not.

    The passage alone is read: no prompt, no chat template, no question. Its first token is only
    read, unless a start token is put before it. Equal passages are read once, and so is one that
    another begins with, as far as both stand in one call.

    Attributes:
        model: Path of a folder or GGUF file, hub id, or the name of a model that comes as a
            wheel.
        per_token: Whether the score is the mean of the tokens' log-probabilities rather than
            their sum.
        start_token: Whether the model's start token is put before the passage.
        max_input_tokens: Number of tokens of a passage at most; a longer one fails.
        batch_tokens: Tokens of a micro-batch, padding included; each takes as many numbers as the
            vocabulary has words. `auto` is as many as the GPU's memory holds, and 4096 on a CPU.
        dtype: Type of the weights; `auto` is the checkpoint's own.
        device: Device as torch names it; `auto` is CUDA where there is any, else the CPU.
    """

    model: ModelSource = "smollm2-135m-instruct"
    per_token: bool = False
    start_token: bool = False
    max_input_tokens: Positive = 1024
    batch_tokens: BatchTokens = 2048
    dtype: DType = "float32"
    device: str = "auto"

    def load(self) -> None:
        """Loads the model, which is otherwise done when it first reads.

        Raises:
            UserError: It cannot be had, or has too few positions.
        """
        _ = self._start, self._model

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order, its score the log-likelihood.

        Raises:
            ValueError: An input is no single passage, or too long.
            UserError: As `load`.
        """
        passages = [self._passages.ids(read) for read in inputs]
        rows = [(*self._start, *ids) for ids in passages]
        log_probabilities = self._log_probabilities(rows)
        return [
            output_of(self._score(log_probabilities[row]), len(ids))
            for row, ids in zip(rows, passages, strict=True)
        ]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the tokens of each text, special tokens left out."""
        return self._passages.tokens.count(texts)

    def render(self, read: Read) -> str:
        """Returns the text that is scored."""
        return self._passages.render(read)

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: none or one."""
        return self._passages.fit(read)

    @property
    def trainer(self) -> str:
        """What fine-tunes the model as a language model; see `FineTunes`."""
        return "leporello.readers.training.generation:log_likelihood"

    @property
    def tokens(self) -> Tokens:
        """The model's tokenizer."""
        return self._passages.tokens

    def training_row(self, read: Read) -> tuple[int, ...]:
        """Returns the tokens of a passage as it is scored, the first of them only read."""
        return (*self._start, *self._passages.ids(read))

    def _score(self, log_probabilities: Sequence[float]) -> float:
        """Returns the log-likelihood; that of nothing, for a token that is only read, is 0."""
        return sum(log_probabilities) / (len(log_probabilities) or 1 if self.per_token else 1)

    def _log_probabilities(
        self, rows: Iterable[tuple[int, ...]]
    ) -> Mapping[tuple[int, ...], Sequence[float]]:
        """Returns the log-probabilities of all tokens of each row but the first."""
        longest = _longest_by_row(rows)
        prompts = [ModelInput(row) for row in dict.fromkeys(longest.values()) if len(row) > 1]
        replies = self.batching.read(prompts, 1, 0, self._answer)
        scores = {prompt.tokens: reply.scores for prompt, reply in replies.items()}
        return {row: scores.get(whole, ())[: len(row) - 1] for row, whole in longest.items()}

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        """Reads rows side by side; padding stands behind them, where no token looks."""
        import torch

        rows = [prompt.tokens for prompt in batch]
        ids, mask = padded(rows, self._passages.tokens.padding, self._model.device)
        whole = {} if mask.all() else {"attention_mask": mask}
        with torch.inference_mode():
            logits = self._model(input_ids=ids, use_cache=False, **whole).logits
            return [
                Generation(scores=tuple(_likely(out[: len(row) - 1], token[1 : len(row)]).tolist()))
                for row, out, token in zip(rows, logits, ids, strict=True)
            ]

    @cached_property
    def batching(self) -> TokenBudget:
        """What its micro-batches may take, and what came of them."""
        return TokenBudget(self.batch_tokens, self._budget)

    def _budget(self) -> int:
        prompt = ModelInput((self._passages.tokens.padding,) * self.max_input_tokens)
        return MemoryProbe(prompt, self._answer, self.device, _MOST).budget()

    @cached_property
    def _passages(self) -> Passages:
        needed = self.max_input_tokens + self.start_token
        names, parameters = ("max_position_embeddings",), "max_input_tokens"
        check_positions(self.model, needed, names, parameters)
        return Passages(Tokens(self.model), self.max_input_tokens)

    @cached_property
    def _start(self) -> tuple[int, ...]:
        start = self._passages.tokens.tokenizer.bos_token_id
        if self.start_token and start is None:
            raise UserError(f"model {self.model!r} has no start token: leave start_token out")
        return (int(start),) if self.start_token else ()

    @cached_property
    def _model(self) -> PreTrainedModel:
        return load_model(self.model, "AutoModelForCausalLM", self.dtype, self.device)


def _longest_by_row(rows: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Returns for each row the longest of them that begins with it: tokens look at none behind."""
    longest: dict[tuple[int, ...], tuple[int, ...]] = {}
    after: tuple[int, ...] = ()
    for row in sorted(set(rows), reverse=True):  # what begins with a row stands just before it
        longest[row] = longest[after] if after[: len(row)] == row else row
        after = row
    return longest


def _likely(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Returns the log-probabilities of tokens, shape (tokens,), of logits (tokens, vocabulary)."""
    logits = logits.float()
    chosen: torch.Tensor = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - logits.logsumexp(-1)
