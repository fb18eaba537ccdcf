"""Reader that scores passages by their likelihood under GPT-2, Llama and similar models."""

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
    """Scores a passage by its log-likelihood under a decoder-only model, also a chat model.

    Only the passage is read, without prompt, chat template or question. Its first token has no
    score unless a start token precedes it. Within a call, equal passages are read once, and a
    passage that begins another one is read with it.

    Attributes:
        model: Path of a folder or GGUF file, hub id, or name of a model that is installed as a
            wheel.
        per_token: Whether the score is the mean of the tokens' log-probabilities rather than
            their sum.
        start_token: Whether the model's start token precedes the passage.
        max_input_tokens: Maximum number of tokens per passage; a longer passage fails.
        batch_tokens: Maximum number of tokens per micro-batch, including padding; each needs a
            number per word of the vocabulary. `auto` fills the GPU's memory, or is 4096 on a CPU.
        dtype: Type of the weights; `auto` is that of the checkpoint.
        device: Device as torch names it; `auto` is CUDA if available, otherwise the CPU.
    """

    _architecture = "AutoModelForCausalLM"
    _most = 64

    model: ModelSource = "smollm2-135m-instruct"
    # The sum, since a text and its shuffles have nearly the same number of tokens.
    per_token: bool = False
    start_token: bool = False
    max_input_tokens: Positive = 1024
    # Smaller than elsewhere: every position has scores of the complete vocabulary.
    batch_tokens: BatchTokens = 2048
    # Text and shuffle differ little, and half precision would round the difference away.
    dtype: DType = "float32"
    device: str = "auto"

    def load(self) -> None:
        """Loads the model, which `read` otherwise does on first use.

        Raises:
            UserError: The model cannot be loaded, or has too few positions.
        """
        _ = self._start, self._network

    @property
    def trainer(self) -> str:
        """Name of the function that fine-tunes the model on passages; see `FineTunes`."""
        return "leporello.readers.training.fine_tuning:log_likelihood"

    def training_row(self, read: Read) -> tuple[int, ...]:
        """Returns the tokens of a passage as it is scored; the first one has no score."""
        return (*self._start, *self.ids(read))

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        """Returns the log-likelihoods; that of a single token without start token is 0."""
        rows = {ids: (*self._start, *ids) for ids in passages}
        scores = self._log_probabilities(rows.values())
        sums = {ids: (sum(scores[row]), len(scores[row])) for ids, row in rows.items()}
        return {ids: s / (n or 1 if self.per_token else 1) for ids, (s, n) in sums.items()}

    def _log_probabilities(
        self, rows: Iterable[tuple[int, ...]]
    ) -> Mapping[tuple[int, ...], Sequence[float]]:
        """Returns the log-probabilities of the tokens of each row after the first one."""
        # Growing windows begin each other, so this saves a pass for each pair (decision 21).
        longest = _longest_by_row(rows)
        prompts = [ModelInput(row) for row in dict.fromkeys(longest.values()) if len(row) > 1]
        replies = self.batching.read(prompts, 1, 0, self._answer)
        scores = {prompt.tokens: reply.scores for prompt, reply in replies.items()}
        return {row: scores.get(longer, ())[: len(row) - 1] for row, longer in longest.items()}

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        """Reads rows in parallel, with padding at their ends, which no token attends to."""
        import torch

        rows = [prompt.tokens for prompt in batch]
        ids, mask = padded(rows, self.tokens.padding, self._network.device)
        masks = {} if mask.all() else {"attention_mask": mask}
        with torch.inference_mode():
            logits = self._network(input_ids=ids, use_cache=False, **masks).logits
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
            raise UserError(f"model {self.model!r} has no start token: omit start_token")
        return (int(start),) if self.start_token else ()


def _longest_by_row(rows: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Returns for each row the longest row that begins with it, and so has the same scores."""
    longest: dict[tuple[int, ...], tuple[int, ...]] = {}
    after: tuple[int, ...] = ()
    # Each row once: equal passages are 8 % of all, for blocks of five a third (decision 21).
    for row in sorted(set(rows), reverse=True):  # in this order, longer rows directly precede it
        longest[row] = longest[after] if after[: len(row)] == row else row
        after = row
    return longest
