"""Reader that scores passages by their likelihood under BERT, RoBERTa and similar models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from leporello.core.errors import UserError
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.readers.backends.pretrained import DType, Tokens
from leporello.readers.backends.rows import log_probabilities, padded
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens
from leporello.readers.log_likelihood import PassageScorer

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class PseudoLogLikelihood(PassageScorer):
    """Scores a passage by the log-probabilities of its tokens, each masked in turn (MLM scoring).

    After Salazar et al. (2020), but without special tokens such as `[CLS]`, which the authors of
    the Shuffle Test omit. The model reads one row per token of the passage. Within a call, equal
    passages are scored once.

    Attributes:
        model: Path or hub id; the weights must be safetensors.
        per_token: Whether the score is the mean of the tokens' log-probabilities, or their sum.
        masks: Number of tokens that are masked at once. Larger numbers need fewer rows, but change
            the score, since masked tokens, drawn at random, do not see each other.
        seed: Random seed.
        max_input_tokens: Maximum number of tokens per passage; a longer passage fails.
    """

    _architecture = "AutoModelForMaskedLM"

    model: ModelSource
    per_token: bool = True  # the mean per token, as in the paper's MLM scoring (decision 21)
    # One at a time is exact; two halve the work but hide tokens from each other.
    masks: Positive = 1
    seed: Count = 0
    max_input_tokens: Positive = 512
    batch_tokens: BatchTokens = 8192
    dtype: DType = "float32"
    device: str = "auto"

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        self.load()
        rows: dict[Masked, tuple[int, ...]] = {}
        for ids in passages:
            rows |= dict.fromkeys(rows_of(ids, self.masks, self.seed), ids)
        sums = dict.fromkeys(rows.values(), 0.0)
        replies = self.batching.read(rows, 1, 0, self._answer)
        for masked, ids in rows.items():
            sums[ids] += sum(replies[masked].scores)
        return {ids: s / (len(ids) if self.per_token else 1) for ids, s in sums.items()}

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        import torch

        network = self._network
        ids, visible = padded([row.tokens for row in batch], self.tokens.padding, network.device)
        hidden = [row.hidden for row in batch if isinstance(row, Masked)]
        rows = torch.tensor([n for n, row in enumerate(hidden) for _ in row], device=ids.device)
        positions = torch.tensor([place for row in hidden for place in row], device=ids.device)
        original = ids[rows, positions]
        ids[rows, positions] = self.tokens.tokenizer.mask_token_id
        masks = {} if visible.all() else {"attention_mask": visible}
        with torch.inference_mode():
            logits = _logits(network, {"input_ids": ids, **masks}, rows, positions)
            probabilities = iter(log_probabilities(logits, original).tolist())
        return [Generation(scores=tuple(next(probabilities) for _ in row)) for row in hidden]

    def _largest(self) -> ModelInput:
        return Masked((self.tokens.padding,) * self.max_input_tokens, hidden=(0,))

    def _load_tokens(self) -> Tokens:
        tokens = super()._load_tokens()
        if tokens.tokenizer.mask_token_id is None:
            raise UserError(
                f"model {self.model!r} has no mask token: PseudoLogLikelihood needs a masked"
                " model such as roberta-base; use LogLikelihood for generative models"
            )
        return tokens


@dataclass(frozen=True, slots=True)
class Masked(ModelInput):
    """A row with some of its tokens masked."""

    hidden: tuple[int, ...] = ()


def rows_of(tokens: tuple[int, ...], masks: int, seed: int) -> list[Masked]:
    """Returns rows in which each token is masked once, with `masks` random tokens per row."""
    order = [*range(len(tokens))]
    if masks > 1:
        # By the length only, so that the same passage has the same rows in every batch.
        Random(f"{seed}/{len(order)}").shuffle(order)
    starts = range(0, len(order), masks)
    return [Masked(tokens, hidden=tuple(sorted(order[i : i + masks]))) for i in starts]


def _logits(
    model: PreTrainedModel, arguments: dict[str, Any], rows: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    """Returns only the logits at these positions, shape (positions, vocabulary)."""

    def choose(_: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        states, *unchanged = inputs
        return (states[rows, positions], *unchanged)

    # A window of 512 tokens takes 0.38 of the complete passes this way (decision 21).
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]  # transformers leaves it so
    hook = head.register_forward_pre_hook(choose) if head is not None else None
    try:
        logits: torch.Tensor = model(**arguments).logits
    finally:
        if hook:
            hook.remove()
    # A model without such a layer, or one that uses only its weights, returns all logits.
    return logits if logits.dim() == 2 else logits[rows, positions]  # noqa: PLR2004 -- chosen already
