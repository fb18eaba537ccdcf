"""Readers that score passages by their likelihood: under GPT-2 and Llama, or BERT and RoBERTa."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from leporello.core.errors import UserError
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Chunk, Output, Read
from leporello.readers.backends.pretrained import TRAINER, DType, Tokens
from leporello.readers.backends.rows import log_probabilities, padded
from leporello.readers.batching.batched_model import BatchedModel
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens
from leporello.readers.prompting.template import encodable, passage_text, refuse_pairs
from leporello.text.tokens import pieces

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from transformers import PreTrainedModel


class PassageScorer(BatchedModel):
    """Base of the readers that score the likelihood of a single passage.

    The tokens of a chunk are those of its document that end within it, as its chunker counts them.
    They differ from those of its text, since a chunk may begin within a word.
    """

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order; the text is the score."""
        passages = [self.ids(read) for read in inputs]
        scores = self._scores(dict.fromkeys(passages))
        return [Output(f"{scores[p]:.6f}", scores[p], input_tokens=len(p)) for p in passages]

    def render(self, read: Read) -> str:
        """Returns the text that is scored."""
        return passage_text(_only(read))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: 0 or 1, since only one is read."""
        return int(
            bool(read.passages) and len(self._ids(read.passages[0])) <= self.max_input_tokens
        )

    def ids(self, read: Read) -> tuple[int, ...]:
        """Returns the tokens of an input's only passage; raises ValueError if they do not fit."""
        tokens = self._ids(_only(read))
        if not tokens:
            raise ValueError("the passage has no tokens, so it cannot be scored")
        if len(tokens) > self.max_input_tokens:
            raise ValueError(
                f"the passage has {len(tokens)} tokens, but max_input_tokens is"
                f" {self.max_input_tokens}: divide the document with the chunker Windows, with at"
                " most this size and the tokenizer of the reader's model"
            )
        return tokens

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        raise NotImplementedError

    def _ids(self, passage: Chunk | str) -> tuple[int, ...]:
        if isinstance(passage, str):
            return self._encoded(passage)[0]
        # The tokens of the document: a text cut in the middle of words has others (decision 21).
        key = (PassageScorer, self.model)
        text = passage.document.text
        # Once per document: overlapping windows would tokenize most of the text several times, and
        # a window on its own may have other tokens at its ends.
        ids, ends = passage.document.memo(key, lambda: self._encoded(text))
        first = int(ends.searchsorted(passage.start, "right")) if passage.start else 0
        inside: tuple[int, ...] = ids[first : int(ends.searchsorted(passage.end, "right"))]
        return inside

    def _encoded(self, text: str) -> tuple[tuple[int, ...], NDArray[np.int64]]:
        import numpy as np

        # In pieces, since tokenizers are slow on a whole book in one call.
        cuts = pieces(text)
        options = {"add_special_tokens": False, "return_offsets_mapping": True, "verbose": False}
        parts = [encodable(text[start:end]) for start, end in pairwise(cuts)]
        encoded = [self.tokens.tokenizer(piece, **options) for piece in parts]
        ids = tuple(chain.from_iterable(piece["input_ids"] for piece in encoded))
        ends = [
            start + end
            for start, piece in zip(cuts[:-1], encoded, strict=True)
            for _, end in piece["offset_mapping"]
        ]
        return ids, np.maximum.accumulate(np.asarray(ends, dtype=np.int64))


def _only(read: Read) -> Chunk | str:
    refuse_pairs([read])
    if len(read.passages) != 1:
        raise ValueError(
            f"a likelihood needs exactly one passage, but the input has {len(read.passages)}:"
            " use a combiner that reads each hit separately, such as Mean"
        )
    return read.passages[0]


@dataclass(frozen=True)
class LogLikelihood(PassageScorer):
    """Scores a passage by its log-likelihood under a decoder-only model, also a chat model.

    Only the passage is read, without prompt, chat template or question. Its first token has no
    score. Within a call, equal passages are read once, and a passage that begins another one is
    read with it.

    Attributes:
        model: Path of a folder or GGUF file, hub id, or name of a model that is installed as a
            wheel.
        per_token: Whether the score is the mean of the tokens' log-probabilities rather than
            their sum.
        max_input_tokens: Maximum number of tokens per passage; a longer passage fails.
        batch_tokens: Maximum number of tokens per micro-batch, including padding; each needs a
            number per word of the vocabulary. `auto` fills the GPU's memory, or is 4096 on a CPU.
    """

    _architecture = "AutoModelForCausalLM"
    trainer = TRAINER
    _most = 64

    model: ModelSource = "smollm2-135m-instruct"
    # The sum, since a text and its shuffles have nearly the same number of tokens.
    per_token: bool = False
    max_input_tokens: Positive = 1024
    # Smaller than elsewhere: every position has scores of the complete vocabulary.
    batch_tokens: BatchTokens = 2048
    # Text and shuffle differ little, and half precision would round the difference away.
    dtype: DType = "float32"
    device: str = "auto"

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        """Returns the log-likelihoods; that of a single token is 0."""
        # Growing windows begin each other, so this saves a pass for each pair (decision 21).
        longest = _longest_by_row(passages)
        prompts = [ModelInput(row) for row in longest.values() if len(row) > 1]
        rows = {prompt.tokens: reply.scores for prompt, reply in self._replies(prompts).items()}
        scores = {}
        for ids, longer in longest.items():
            row = rows.get(longer, ())[: len(ids) - 1]
            scores[ids] = sum(row) / (len(row) or 1 if self.per_token else 1)
        return scores

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


def _longest_by_row(rows: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Returns for each row the longest row that begins with it, and so has the same scores."""
    longest: dict[tuple[int, ...], tuple[int, ...]] = {}
    after: tuple[int, ...] = ()
    # Each row once: equal passages are 8 % of all, for blocks of five a third (decision 21).
    for row in sorted(set(rows), reverse=True):  # in this order, longer rows directly precede it
        longest[row] = longest[after] if after[: len(row)] == row else row
        after = row
    return longest


@dataclass(frozen=True)
class PseudoLogLikelihood(PassageScorer):
    """Scores a passage by the log-probabilities of its tokens, each masked in turn (MLM scoring).

    After Salazar et al. (2020), but without special tokens such as `[CLS]`, which the authors of
    the Shuffle Test omit. The model reads one row per token of the passage. Within a call, equal
    passages are scored once.

    Attributes:
        model: Path or hub id; the weights must be safetensors.
        per_token: Whether the score is the mean of the tokens' log-probabilities, or their sum.
        max_input_tokens: Maximum number of tokens per passage; a longer passage fails.
    """

    _architecture = "AutoModelForMaskedLM"

    model: ModelSource
    per_token: bool = True  # the mean per token, as in the paper's MLM scoring (decision 21)
    max_input_tokens: Positive = 512
    batch_tokens: BatchTokens = 8192
    dtype: DType = "float32"
    device: str = "auto"

    def _scores(self, passages: Iterable[tuple[int, ...]]) -> Mapping[tuple[int, ...], float]:
        self.load()
        rows = {Masked(ids, hidden=place): ids for ids in passages for place in range(len(ids))}
        sums = dict.fromkeys(rows.values(), 0.0)
        replies = self._replies(rows)
        for masked, ids in rows.items():
            sums[ids] += replies[masked].score
        return {ids: s / (len(ids) if self.per_token else 1) for ids, s in sums.items()}

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        import torch

        network = self._network
        ids, visible = padded([row.tokens for row in batch], self.tokens.padding, network.device)
        hidden = [row.hidden for row in batch if isinstance(row, Masked)]
        places = (
            torch.arange(len(batch), device=ids.device),
            torch.tensor(hidden, device=ids.device),
        )
        original = ids[places]
        ids[places] = self.tokens.tokenizer.mask_token_id
        masks = {} if visible.all() else {"attention_mask": visible}
        with torch.inference_mode():
            logits = _logits(network, {"input_ids": ids, **masks}, places)
            return [Generation(score=s) for s in log_probabilities(logits, original).tolist()]

    def _largest(self) -> ModelInput:
        return Masked((self.tokens.padding,) * self.max_input_tokens)

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
    """A row with a masked token."""

    hidden: int = 0  # position of this token


def _logits(
    model: PreTrainedModel, arguments: dict[str, Any], places: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """Returns only the logits at these places (rows, positions), shape (places, vocabulary)."""

    def choose(_: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        states, *unchanged = inputs
        return (states[places], *unchanged)

    # A window of 512 tokens takes 0.38 of the complete passes this way (decision 21).
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]  # transformers leaves it so
    hook = head.register_forward_pre_hook(choose) if head is not None else None
    try:
        logits: torch.Tensor = model(**arguments).logits
    finally:
        if hook:
            hook.remove()
    # A model without such a layer, or one that uses only its weights, returns all logits.
    return logits if logits.dim() == 2 else logits[places]  # noqa: PLR2004 -- chosen already
