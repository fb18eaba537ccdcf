"""Batches of decoder-only models, computed by CTranslate2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leporello.readers.backends import transformers_causal
from leporello.readers.backends.backend import Precision
from leporello.readers.backends.ctranslate2 import models
from leporello.readers.backends.ctranslate2.conversion import ModelKind
from leporello.readers.backends.ctranslate2.models import ConvertedModel
from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import Tokens
from leporello.readers.batching.micro_batches import Generation, ModelInput

if TYPE_CHECKING:
    import torch

# Only types whose texts and scores were compared with transformers (decision 18).
_TYPES = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


def check(model: str, dtype: Precision, decoding: Decoding) -> None:  # noqa: ARG001 -- the protocol of backends
    """Raises ValueError for settings with which CTranslate2 differs from transformers."""
    models.check(model, _KIND, decoding)
    # Refused, not ignored: transformers counts the prompt's tokens, CTranslate2 does not.
    models.refuse(
        "CTranslate2 ignores the tokens of the prompt",
        no_repeat_ngram_size=decoding.no_repeat_ngram_size,
        repetition_penalty=decoding.repetition_penalty - 1,
    )


def load(model: str, dtype: Precision, device: str) -> ConvertedModel:
    """Returns the model, ready to read."""
    return models.load(model, _KIND, dtype, device)


def write(
    model: ConvertedModel, tokens: Tokens, decoding: Decoding, prompts: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the texts that the model generates."""
    room = model.room(decoding)
    if not room:
        # The only token is the forced last one, so the text is empty.
        return [Generation(output_tokens=1)] * len(prompts)
    replies: list[Generation] = []
    for batch in _similar(prompts, decoding):
        pending = model.engine.generate_batch(
            [model.words(prompt.tokens) for prompt in batch],
            max_length=room,
            min_length=min(decoding.min_new_tokens, room),
            include_prompt_in_result=False,
            **models.options(model, tokens, decoding),
        )
        replies += [
            models.reply(model, tokens, decoding, result.sequences, result.scores)
            for result in models.waited(pending)
        ]
    return replies


def _similar(prompts: Sequence[ModelInput], decoding: Decoding) -> Iterator[list[ModelInput]]:
    """Yields the prompts, longest first, in batches of similar length.

    The engine reads the length of the shortest prompt at once, and the remaining tokens of longer
    prompts one by one, as slowly as it generates. This is acceptable if they are few in relation to
    the new tokens. With beams, a shorter prompt in the batch changes their ranking, so all prompts
    of a batch have equal length.
    """
    # Tokens read one by one cost ten to thirty times as much (decision 18).
    slack = decoding.max_new_tokens // 3 if decoding.num_beams == 1 else 0
    batch: list[ModelInput] = []
    for prompt in prompts:
        length = len(prompt.tokens)
        if batch and length < len(batch[0].tokens) - (slack if length > 1 else 0):
            yield batch
            batch = []
        batch.append(prompt)
    yield batch


def score(model: ConvertedModel, tokens: Tokens, prompts: Sequence[ModelInput]) -> list[Generation]:  # noqa: ARG001 -- the protocol of backends
    """Returns the scores of the choices; each prompt is read once."""
    return [Generation(scores=tuple(_scores(model, prompt))) for prompt in prompts]


def _scores(model: ConvertedModel, prompt: ModelInput) -> Iterator[float]:
    """Yields the mean log-probability of each choice, from the logits of a forced decoding.

    The prompt without its last token is read once; its state is repeated for the choices.
    """
    import torch
    from torch.nn.functional import cross_entropy

    *prefix, last = model.words(prompt.tokens)
    pending = model.engine.generate_batch(
        [[last, *model.words(choice)] for choice in prompt.choices],
        static_prompt=prefix or None,
        # The prompts of one call differ, so a cache of them would only fill memory.
        cache_static_prompt=False,
        # As many steps as the longest choice; the logits after the end of shorter ones are dropped.
        max_length=max(map(len, prompt.choices)),
        return_logits_vocab=True,
        asynchronous=True,
    )
    for result, choice in zip(models.waited(pending), prompt.choices, strict=True):
        steps = [_tensor(step) for step in result.logits[0][: len(choice)]]
        yield -float(cross_entropy(torch.stack(steps), torch.tensor(choice)))


def _tensor(view: Any) -> torch.Tensor:  # noqa: ANN401 -- CTranslate2 has no types
    """Returns the logits of one step, shape (vocabulary,), in float32 on the CPU."""
    import ctranslate2
    import numpy as np
    import torch

    # NumPy has no bfloat16, and the softmax must have the precision of transformers' scores.
    view = view.to(ctranslate2.DataType.float32).to_device(ctranslate2.Device.cpu)
    return torch.from_numpy(np.array(view))


_KIND = ModelKind("AutoModelForCausalLM", "Generator", _TYPES, transformers_causal.score, score)
