"""Batches of decoder-only models, computed by vLLM."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Any

from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.models.locate import loadable
from leporello.models.weights import disable_pickle_conversion
from leporello.readers.backends.decoding import Decoding, end_tokens
from leporello.readers.backends.pretrained import DType, Tokens, read_config
from leporello.readers.batching.micro_batches import Generation, ModelInput

# Set before the import: no telemetry, and no second process, whose speed would change the order.
_ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
_ENVIRONMENT |= {"VLLM_LOGGING_LEVEL": "ERROR"}


@dataclass(frozen=True)
class Served:
    """A loaded model."""

    engine: Any
    ends: tuple[int, ...]

    def run(self, rows: Sequence[Sequence[int]], **sampling: object) -> list[Any]:
        """Returns the engine's result for each row of ids."""
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt

        # Ids, not text, so that its tokenizer cannot add or merge tokens (decision 18).
        prompts = [TokensPrompt(prompt_token_ids=[*row]) for row in rows]
        parameters = SamplingParams(temperature=0.0, **sampling)
        results = self.engine.generate(prompts, parameters, use_tqdm=False)
        return [*results[-len(rows) :]]  # results of an interrupted call may precede them


def check(model: str, dtype: DType, decoding: Decoding) -> None:  # noqa: ARG001 -- the protocol of backends
    """Raises ValueError for settings with which vLLM differs from transformers."""
    rules = {
        # vLLM's beam search follows other rules, so it is refused (decision 18).
        "num_beams": decoding.num_beams > 1,
        "no_repeat_ngram_size": decoding.no_repeat_ngram_size > 0,
    }
    if names := [name for name, is_set in rules.items() if is_set]:
        raise ValueError(
            f"{', '.join(names)}: vLLM does not support this with greedy search; omit it, or"
            " backend: vllm"
        )


@lru_cache(maxsize=1)  # readers that differ only in prompt or input window share the model
def load(model: str, dtype: DType, device: str) -> Served:
    """Returns a model; raises UserError if it, vLLM or the device is missing."""
    os.environ.update({name: os.environ.get(name, value) for name, value in _ENVIRONMENT.items()})
    require("backend: vllm", "vllm")
    _check_device(device)
    from vllm import LLM

    # Otherwise transformers would send the hub token to a service that converts pickles.
    disable_pickle_conversion()
    location = loadable(model)
    config, settings = _configs(model, location)
    try:
        engine = LLM(
            model=location,
            dtype=_precision(config, dtype),
            max_model_len=-1,  # as many positions as the memory holds
            load_format="safetensors",
            trust_remote_code=False,
            # A checkpoint's sampling settings would make answers differ between backends.
            generation_config="vllm",  # without the checkpoint's defaults
            logprobs_mode="processed_logprobs",  # after penalties, as in transformers
            # Prefix caching made prompt_logprobs wrong: github.com/vllm-project/vllm/issues/42019.
            enable_prefix_caching=False,
            disable_log_stats=True,
            seed=0,
        )
    except (ValueError, RuntimeError, OSError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UserError(
            f"vLLM cannot run model {model!r} with dtype {dtype!r}: {first}."
            " Omit backend to use transformers"
        ) from error
    return Served(engine, end_tokens(settings))


def write(
    model: Served, tokens: Tokens, decoding: Decoding, prompts: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the texts that the model generates."""
    # Leading white space of an answer is ignored, but would match these strings in vLLM.
    stop = [text for text in decoding.stop if not text[0].isspace()]
    results = model.run(
        [prompt.tokens for prompt in prompts],
        max_tokens=decoding.max_new_tokens,
        min_tokens=decoding.min_new_tokens,
        repetition_penalty=decoding.repetition_penalty,
        stop=stop,
        stop_token_ids=[*model.ends],
        logprobs=0,  # only of the chosen tokens
        detokenize=bool(stop),
    )
    return [_reply(tokens, decoding, model.ends, result.outputs[0]) for result in results]


def score(model: Served, tokens: Tokens, prompts: Sequence[ModelInput]) -> list[Generation]:  # noqa: ARG001 -- the protocol of backends
    """Returns the scores of the choices; the prompt is read again for each of them."""
    # vLLM computes prompt_logprobs again whatever it has cached, so the prompt is repeated.
    rows = [(*prompt.tokens, *choice) for prompt in prompts for choice in prompt.choices]
    results = iter(model.run(rows, max_tokens=1, prompt_logprobs=0, detokenize=False))
    scores = (
        # A choice is at the end of its prompt.
        tuple(
            fmean(map(_score, next(results).prompt_logprobs[-len(choice) :], choice))
            for choice in prompt.choices
        )
        for prompt in prompts
    )
    return [Generation(scores=row) for row in scores]


def _reply(tokens: Tokens, decoding: Decoding, ends: Sequence[int], output: Any) -> Generation:  # noqa: ANN401 -- a record of vLLM
    ids = decoding.trimmed(list(output.token_ids), tokens, frozenset(ends))
    scores = [_score(step, token) for step, token in zip(output.logprobs, ids, strict=False)]
    return Generation(
        decoding.cut_off(tokens.decode(ids)), fmean(scores or [0]), output_tokens=len(ids)
    )


def _score(step: Mapping[int, Any], token: int) -> float:
    return float(step[token].logprob)


def _check_device(device: str) -> None:
    from vllm.platforms import current_platform

    present = current_platform.device_type
    if not present:
        raise UserError(
            "backend: vllm needs a GPU, but none was found: omit backend to use transformers"
        )
    if device not in ("auto", present):
        raise UserError(
            f"backend: vllm runs on {present!r} here, not on device {device!r}: omit device;"
            " CUDA_VISIBLE_DEVICES selects the GPU"
        )


def _configs(model: str, location: str) -> tuple[Any, Any]:
    from transformers import GenerationConfig

    config = read_config(model)
    try:
        return config, GenerationConfig.from_pretrained(location)
    except OSError:  # the model has no generation config
        return config, GenerationConfig.from_model_config(config)


def _precision(config: Any, dtype: DType) -> str:  # noqa: ANN401 -- differs per model
    """Returns the precision; vLLM's `auto` would not keep a checkpoint's float32."""
    if dtype != "auto":
        return dtype
    return str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")
