"""How likely a masked model finds a passage: BERT, RoBERTa and their like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

from leporello.core.errors import UserError
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.readers.backends.padding import padded
from leporello.readers.backends.pretrained import DType
from leporello.readers.backends.scoring import log_probabilities
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens
from leporello.readers.encoders.token_ids import PassageScorer

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class PseudoLogLikelihood(PassageScorer):
    """Scores a passage by the log-probabilities of its tokens, each hidden in turn (MLM scoring).

    After Salazar et al. (2020). It takes as many rows as the passage has tokens. Equal passages
    are scored once, as far as they stand in one call.

    Attributes:
        model: Path or hub id; the weights must be safetensors.
        per_token: Whether the score is the mean of the tokens' log-probabilities, or their sum.
        special_tokens: Whether the tokens that mark a text's ends (`[CLS]`, `</s>`) stand around
            the passage, as in training; the Shuffle Test's authors leave them out.
        masks: Number of tokens that are hidden at once. More than one, drawn by chance, takes so
            many times fewer rows; the score is then another, since the tokens do not see each
            other.
        seed: Seed of this chance.
        max_input_tokens: Number of tokens of a passage at most, special ones included; a longer one
            fails.
        batch_tokens: Tokens of a micro-batch, padding included; `auto` is as many as the GPU's
            memory holds, and 4096 on a CPU.
        dtype: Type of the weights; `auto` is the checkpoint's own.
        device: Device as torch names it; `auto` is CUDA where there is any, else the CPU.
    """

    _architecture = "AutoModelForMaskedLM"

    model: ModelSource
    per_token: bool = True
    special_tokens: bool = False
    masks: Positive = 1
    seed: Count = 0
    max_input_tokens: Positive = 512
    batch_tokens: BatchTokens = 8192
    dtype: DType = "float32"
    device: str = "auto"

    def load(self) -> None:
        """Loads the model, which is otherwise done when it first reads.

        Raises:
            UserError: It cannot be had, masks nothing, or has too few positions.
        """
        _ = self._mask, self._network

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        self.load()
        before, after = self._ends
        rows: dict[Masked, tuple[int, ...]] = {}
        for ids in passages:
            whole = (*before, *ids, *after)
            positions = range(len(before), len(before) + len(ids))
            rows |= dict.fromkeys(rows_of(whole, positions, self.masks, self.seed), ids)
        sums = dict.fromkeys(rows.values(), 0.0)
        replies = self.batching.read(rows, 1, 0, self._answer)
        for row, ids in rows.items():
            sums[ids] += sum(replies[row].scores)
        return {ids: s / (len(ids) if self.per_token else 1) for ids, s in sums.items()}

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        return answer(self._network, self._mask, self.tokens.padding, batch)

    @property
    def _limit(self) -> int:
        return self.max_input_tokens - sum(map(len, self._ends))

    def _largest(self) -> ModelInput:
        return Masked((self.tokens.padding,) * self.max_input_tokens, hidden=(0,))

    @cached_property
    def _ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The special tokens before and behind a passage."""
        if not self.special_tokens:
            return (), ()
        bare, whole = (self.tokens.tokenizer("a", add_special_tokens=s) for s in (False, True))
        ids, around = tuple(bare["input_ids"]), tuple(whole["input_ids"])
        starts = range(len(around) - len(ids) + 1)
        start = next(index for index in starts if around[index : index + len(ids)] == ids)
        return around[:start], around[start + len(ids) :]

    @cached_property
    def _mask(self) -> int:
        mask = self.tokens.tokenizer.mask_token_id
        if mask is None:
            raise UserError(
                f"model {self.model!r} has no token that masks: PseudoLogLikelihood takes masked"
                " models such as roberta-base; LogLikelihood takes generative ones"
            )
        return int(mask)


@dataclass(frozen=True, slots=True)
class Masked(ModelInput):
    """A row with some of its tokens hidden.

    Attributes:
        hidden: Positions of the hidden tokens, ascending.
    """

    hidden: tuple[int, ...] = ()


def rows_of(
    tokens: tuple[int, ...], positions: Sequence[int], masks: int, seed: int
) -> list[Masked]:
    """Returns rows in which every one of these positions is hidden once.

    Args:
        tokens: Tokens of the whole row.
        positions: Positions that are to be hidden.
        masks: Number of tokens hidden in a row; more than one are drawn by chance, which depends
            on the seed and the number of positions alone.
        seed: Seed of the chance.
    """
    order = list(positions)
    if masks > 1:
        Random(f"{seed}/{len(order)}").shuffle(order)
    starts = range(0, len(order), masks)
    return [Masked(tokens, hidden=tuple(sorted(order[i : i + masks]))) for i in starts]


def answer(
    model: PreTrainedModel, mask: int, padding: int, batch: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the log-probabilities of what is hidden in each row.

    Args:
        model: Model that is asked for the words at hidden positions, and for no others.
        mask: Token that hides.
        padding: Token that fills up rows.
        batch: Rows of `Masked`.
    """
    import torch

    ids, seen = padded([prompt.tokens for prompt in batch], padding, model.device)
    hidden = [row.hidden for row in batch if isinstance(row, Masked)]
    rows = torch.tensor([n for n, row in enumerate(hidden) for _ in row], device=ids.device)
    positions = torch.tensor([position for row in hidden for position in row], device=ids.device)
    original = ids[rows, positions]
    ids[rows, positions] = mask
    inputs = {"input_ids": ids} if seen.all() else {"input_ids": ids, "attention_mask": seen}
    with torch.inference_mode():
        logits = _logits(model, inputs, rows, positions)
        likely = iter(log_probabilities(logits, original).tolist())
    return [Generation(scores=tuple(next(likely) for _ in row)) for row in hidden]


def _logits(
    model: PreTrainedModel, arguments: dict[str, Any], rows: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    """Returns the logits at these places only, shape (places, vocabulary).

    The last layer, which knows every word, is given no other place: for a row of 512 tokens of
    which one is hidden it would be most of what is kept in memory, and much of the work.
    """

    def choose(_: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        states, *others = inputs
        return (states[rows, positions], *others)

    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]  # transformers leaves it so
    hook = head.register_forward_pre_hook(choose) if head is not None else None
    try:
        logits: torch.Tensor = model(**arguments).logits
    finally:
        if hook:
            hook.remove()
    # A model that has no such layer, or uses its weights alone, says all it knows.
    return logits if logits.dim() == 2 else logits[rows, positions]  # noqa: PLR2004 -- chosen already
