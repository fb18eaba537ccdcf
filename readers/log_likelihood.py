"""How likely a generative model finds a passage: GPT-2, Llama, SmolLM and their like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from leporello.core.errors import UserError
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Read
from leporello.readers.backends.padding import padded
from leporello.readers.backends.pretrained import DType, Tokens, check_positions
from leporello.readers.backends.scoring import log_probabilities
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens
from leporello.readers.encoders.token_ids import PassageScorer


@dataclass(frozen=True)
class LogLikelihood(PassageScorer):
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

    _architecture = "AutoModelForCausalLM"
    _most = 64

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
        _ = self._start, self._network

    @property
    def trainer(self) -> str:
        """What fine-tunes the model as a language model; see `FineTunes`."""
        return "leporello.readers.training.fine_tuning:log_likelihood"

    def training_row(self, read: Read) -> tuple[int, ...]:
        """Returns the tokens of a passage as it is scored, the first of them only read."""
        return (*self._start, *self.ids(read))

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        """Returns the log-likelihoods; that of nothing, for a token that is only read, is 0."""
        rows = {ids: (*self._start, *ids) for ids in passages}
        likely = self._log_probabilities(rows.values())
        sums = {ids: (sum(likely[row]), len(likely[row])) for ids, row in rows.items()}
        return {ids: s / (n or 1 if self.per_token else 1) for ids, (s, n) in sums.items()}

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
        ids, mask = padded(rows, self.tokens.padding, self._network.device)
        whole = {} if mask.all() else {"attention_mask": mask}
        with torch.inference_mode():
            logits = self._network(input_ids=ids, use_cache=False, **whole).logits
            return [
                Generation(
                    scores=tuple(
                        log_probabilities(out[: len(row) - 1], token[1 : len(row)]).tolist()
                    )
                )
                for row, out, token in zip(rows, logits, ids, strict=True)
            ]

    def _load_tokens(self) -> Tokens:
        check_positions(self.model, self.max_input_tokens + self.start_token)
        return Tokens(self.model)

    @cached_property
    def _start(self) -> tuple[int, ...]:
        start = self.tokens.tokenizer.bos_token_id
        if self.start_token and start is None:
            raise UserError(f"model {self.model!r} has no start token: leave start_token out")
        return (int(start),) if self.start_token else ()


def _longest_by_row(rows: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Returns for each row the longest of them that begins with it: tokens look at none behind."""
    longest: dict[tuple[int, ...], tuple[int, ...]] = {}
    after: tuple[int, ...] = ()
    for row in sorted(set(rows), reverse=True):  # what begins with a row stands just before it
        longest[row] = longest[after] if after[: len(row)] == row else row
        after = row
    return longest
