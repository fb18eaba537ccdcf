"""Batches of encoder-decoder models, computed by CTranslate2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from leporello.core.errors import UserError
from leporello.readers.backends import transformers_seq2seq
from leporello.readers.backends.backend import Precision
from leporello.readers.backends.ctranslate2 import models
from leporello.readers.backends.ctranslate2.conversion import ModelKind, config_of
from leporello.readers.backends.ctranslate2.models import ConvertedModel
from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import Tokens
from leporello.readers.batching.micro_batches import Generation, ModelInput

# Only types that were compared with transformers; CTranslate2 lacks others, such as LED.
_TYPES = ("bart", "m2m_100", "marian", "mbart", "mt5", "pegasus", "t5")


def check(model: str, dtype: Precision, decoding: Decoding) -> None:  # noqa: ARG001 -- the protocol of backends
    """Raises ValueError for settings with which CTranslate2 differs from transformers."""
    models.check(model, _KIND, decoding)
    config = config_of(model)
    start = config.get("decoder_start_token_id")
    # BART's texts begin with the end token, which CTranslate2 does not count as a repetition.
    if start is not None and start == config.get("eos_token_id"):
        _refuse_repetition(decoding)


def load(model: str, dtype: Precision, device: str) -> ConvertedModel:
    """Returns the model, ready to read."""
    return models.load(model, _KIND, dtype, device)


def write(
    model: ConvertedModel, tokens: Tokens, decoding: Decoding, prompts: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the texts that the model generates."""
    facts, room = model.facts, model.room(decoding)
    if facts.start in facts.ends:
        try:
            _refuse_repetition(decoding)
        except ValueError as error:  # `check` did not read the settings of a hub id
            raise UserError(str(error)) from error
    if not room:
        return [Generation(output_tokens=1)] * len(prompts)
    prefix = None if facts.first is None else [model.words([facts.first])] * len(prompts)
    pending = model.engine.translate_batch(
        [model.words(prompt.tokens) for prompt in prompts],
        target_prefix=prefix,
        max_input_length=0,
        max_decoding_length=room,
        min_decoding_length=min(decoding.min_new_tokens, room),
        **models.options(model, tokens, decoding),
    )
    return [
        models.reply(model, tokens, decoding, result.hypotheses, result.scores)
        for result in models.waited(pending)
    ]


def score(model: ConvertedModel, tokens: Tokens, prompts: Sequence[ModelInput]) -> list[Generation]:  # noqa: ARG001 -- the protocol of backends
    """Returns the scores of the choices; the engine encodes the prompt again for each choice."""
    pending = [_pending_scores(model, prompt) for prompt in prompts]
    return [Generation(scores=tuple(_means(*pair))) for pair in zip(prompts, pending, strict=True)]


def _pending_scores(model: ConvertedModel, prompt: ModelInput) -> Sequence[Any]:
    """Returns the pending results of each choice; rows of one prompt need no padding."""
    # CTranslate2 does not take encoder states, so each choice encodes the prompt (decision 18).
    pending: Sequence[Any] = model.engine.score_batch(
        [model.words(prompt.tokens)] * len(prompt.choices),
        [model.words(_without_end(model, choice)) for choice in prompt.choices],
        max_input_length=0,
        asynchronous=True,
    )
    return pending


def _means(prompt: ModelInput, pending: Sequence[Any]) -> Iterator[float]:
    results = models.waited(pending)
    for result, choice in zip(results, prompt.choices, strict=True):
        yield fmean(result.log_probs[: len(choice)])


def _without_end(model: ConvertedModel, choice: Sequence[int]) -> Sequence[int]:
    """Returns a target without its end token, which the engine adds."""
    facts = model.facts
    if facts.wraps and choice[-1] != facts.start:
        raise ValueError(
            "the answers of this model begin with their end token, which CTranslate2 cannot"
            " score: omit backend"
        )
    return choice[:-1] if choice[-1] == facts.ends[0] else choice


def _refuse_repetition(decoding: Decoding) -> None:
    models.refuse(
        "the texts of this model begin with their end token, which CTranslate2 ignores",
        repetition_penalty=decoding.repetition_penalty - 1,
        no_repeat_ngram_size=decoding.no_repeat_ngram_size == 1,
    )


_KIND = ModelKind("AutoModelForSeq2SeqLM", "Translator", _TYPES, transformers_seq2seq.score, score)
