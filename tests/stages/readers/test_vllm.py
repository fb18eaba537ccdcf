"""CausalLM that vLLM computes: what it is asked for, and that its answers are transformers'.

Where vLLM is not installed, something stands in for it that has of its interface what is used here,
refuses all else, and computes with transformers.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import STORY, tokenizer
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from leporello.core.errors import UserError
from leporello.core.records import Document, Output, Read
from leporello.readers import CausalLM
from leporello.readers.backends import vllm as vllm_causal

DOCUMENT = Document("story", " ".join([STORY] * 4))


@dataclass(frozen=True)
class SamplingParams:
    """As vLLM's, for those who choose the likeliest token."""

    temperature: float
    max_tokens: int
    min_tokens: int = 0
    repetition_penalty: float = 1.0
    stop: Sequence[str] = ()
    stop_token_ids: Sequence[int] = ()
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    detokenize: bool = True

    def __post_init__(self) -> None:
        assert self.temperature == 0
        assert self.detokenize or not self.stop


class LLM:
    """As vLLM's; one prompt after the other, without a cache."""

    def __init__(
        self,
        *,
        model: str,
        dtype: str,
        max_model_len: int,
        load_format: str,
        trust_remote_code: bool,
        generation_config: str,
        logprobs_mode: str,
        enable_prefix_caching: bool,
        disable_log_stats: bool,
        seed: int,
    ) -> None:
        assert (load_format, generation_config) == ("safetensors", "vllm")
        assert (trust_remote_code, enable_prefix_caching) == (False, False)
        assert (max_model_len, logprobs_mode) == (-1, "processed_logprobs")
        if dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"Unknown dtype: {dtype}")
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=dtype)
        self.text = tokenizer("<s> $A", chat=False)
        self.earlier: list[Any] = []
        self.calls: list[int] = []  # the prompts of each

    def generate(
        self, prompts: Sequence[Mapping[str, Any]], params: SamplingParams, *, use_tqdm: bool
    ) -> list[Any]:
        """Returns what is written after each prompt; what was under way stands before it."""
        assert use_tqdm is False
        self.calls.append(len(prompts))
        with torch.inference_mode():
            found = [self._written(each["prompt_token_ids"], params) for each in prompts]
        left, self.earlier = self.earlier, []
        return left + found

    def _written(self, prompt: list[int], params: SamplingParams) -> Any:
        ids, steps = list(prompt), []
        scored = None
        if params.prompt_logprobs == 0:
            likely = self.model(torch.tensor([ids])).logits[0].log_softmax(-1)
            scored = [
                None,
                *(step(row, token) for row, token in zip(likely, ids[1:], strict=False)),
            ]
        while len(ids) - len(prompt) < params.max_tokens:
            logits = self.model(torch.tensor([ids])).logits[0, -1]
            seen = torch.tensor(sorted(set(ids)))
            factor = torch.full_like(logits[seen], params.repetition_penalty)
            logits[seen] *= torch.where(logits[seen] > 0, 1 / factor, factor)
            if len(ids) - len(prompt) < params.min_tokens:
                logits[torch.tensor(params.stop_token_ids)] = -torch.inf
            ids.append(int(logits.argmax()))
            steps.append(step(logits.log_softmax(-1), ids[-1]))
            text = self.text.decode(ids[len(prompt) :], skip_special_tokens=True)
            if ids[-1] in params.stop_token_ids or any(stop in text for stop in params.stop):
                break
        written = SimpleNamespace(token_ids=ids[len(prompt) :], logprobs=steps)
        return SimpleNamespace(prompt_logprobs=scored, outputs=[written])


def step(likely: torch.Tensor, token: int) -> dict[int, Any]:
    """Returns what vLLM tells of a token."""
    return {token: SimpleNamespace(logprob=float(likely[token]))}


def stand_in() -> dict[str, ModuleType]:
    """Returns the modules of something like vLLM."""
    parts: dict[str, dict[str, Any]] = {
        "vllm": {"LLM": LLM, "SamplingParams": SamplingParams, "__path__": []},
        "vllm.inputs": {"TokensPrompt": dict},
        "vllm.platforms": {"current_platform": SimpleNamespace(device_type="cpu")},
    }
    made = {name: ModuleType(name) for name in parts}
    for name, content in parts.items():
        vars(made[name]).update(content, __spec__=ModuleSpec(name, loader=None))
    return made


@pytest.fixture(autouse=True, scope="module")
def vllm() -> Iterator[None]:
    """Has vLLM, or what stands in for it."""
    with pytest.MonkeyPatch.context() as patched:
        if not importlib.util.find_spec("vllm"):
            for name, module in stand_in().items():
                patched.setitem(sys.modules, name, module)
        yield
    vllm_causal.load.cache_clear()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny Llama that often ends its texts, with heads as wide as vLLM wants them."""
    where = tmp_path_factory.mktemp("llama")
    words = tokenizer("<s> $A", chat=False)
    torch.manual_seed(0)
    shape: dict[str, Any] = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2}
    heads: dict[str, Any] = {
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 512,
    }
    ends: dict[str, Any] = {
        "bos_token_id": 3,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "vocab_size": len(words),
    }
    network = LlamaForCausalLM(LlamaConfig(**shape, **heads, **ends, initializer_range=0.3))
    rows = network.lm_head.weight.data
    rows[1] = rows[20:60].mean(0) * 16
    network.save_pretrained(where)
    words.save_pretrained(where)
    return str(where)


@pytest.fixture(scope="module")
def reader(model: str) -> Callable[..., CausalLM]:
    """Returns a reader with this model."""

    def built(**parameters: Any) -> CausalLM:
        limits = {"max_input_tokens": 160, "max_new_tokens": 10, "backend": "vllm"}
        return CausalLM(model, **{**limits, **parameters})

    return built


def reads() -> list[Read]:
    """Returns inputs of several lengths, and with choices."""
    few = tuple(DOCUMENT.chunk(i, i + 40) for i in range(0, 160, 40))
    found = [Read(few[:1], "Who had a cat?"), Read(few[:3], "長靴?"), Read(("a",), "Why?")]
    found += [Read((DOCUMENT.chunk(k, k + 7 * k % 90 + 3),), f"{k}?") for k in range(0, 120, 15)]
    found.append(Read(few[:2], "Who took the mill?", choices=("the eldest", "a cat", "🐈")))
    return [*found, Read(few, "Who?", choices=("x", "the cat's boots 👢, and a donkey"))]


def check_same(theirs: list[Output], ours: list[Output]) -> None:
    """Fails where outputs differ, or their scores by more than 1e-4."""
    for one, other in zip(theirs, ours, strict=True):
        assert (other.text, other.output_tokens) == (one.text, one.output_tokens)
        assert other.score == pytest.approx(one.score, abs=1e-4)
        assert other.scores == pytest.approx(one.scores, abs=1e-4)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"repetition_penalty": 1.3},
        {"min_new_tokens": 6},
        {"stop": ("o", " t", "\n")},
    ],
)
def test_the_same_answers(parameters: dict[str, Any], reader: Callable[..., CausalLM]) -> None:
    """Texts, their ends, scores and scores of choices are those of transformers."""
    theirs = reader(backend="transformers", device="cpu", **parameters).read(reads())
    check_same(theirs, reader(**parameters).read(reads()))
    assert len({output.output_tokens for output in theirs}) > 3


def test_all_prompts_come_in_one_call(reader: Callable[..., CausalLM]) -> None:
    """It packs them itself, whatever their lengths; only what it scores is asked apart."""
    made = reader(max_new_tokens=1)
    made.load()
    engine = made._model.engine
    if not isinstance(engine, LLM):
        pytest.skip("the real one does not count")
    engine.calls.clear()
    written = [Read((STORY[: n % 90 + 1],), f"Number {n}?") for n in range(256)]
    assert len(made.read(written)) == 256
    assert engine.calls == [256]
    scored = [Read((STORY[: 9 * n + 1],), "Who?", choices=("a", "the cat")) for n in range(8)]
    assert len(made.read([*written[:20], *scored])) == 28
    assert engine.calls == [256, 16, 20]
    assert made.batching is None
    assert made.schedules_itself
    assert not reader(backend="transformers").schedules_itself


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"batch_tokens": "auto"}, "batch_tokens: vllm takes all prompts at once.*omit"),
        ({"batch_tokens": 8192}, "batch_tokens: vllm takes all prompts at once"),
        ({"num_beams": 3}, "num_beams: vLLM does not support this"),
        ({"no_repeat_ngram_size": 2}, "no_repeat_ngram_size: vLLM does not support this"),
        ({"dtype": "int8"}, "dtype 'int8' needs backend: ctranslate2"),
    ],
)
def test_what_it_cannot_do_is_refused(
    parameters: dict[str, Any], told: str, reader: Callable[..., CausalLM]
) -> None:
    """It is told when a pipeline is checked, before anything is loaded."""
    with pytest.raises(ValueError, match=told):
        reader(**parameters)


def test_another_device_is_refused(reader: Callable[..., CausalLM]) -> None:
    """VLLM runs on what it was built for, and says which GPU otherwise."""
    with pytest.raises(UserError, match=r"vllm runs on '.*' here, not on device 'abacus'.*CUDA_"):
        reader(device="abacus").load()


def test_no_gpu_is_told(reader: Callable[..., CausalLM], monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what else there is."""
    place = importlib.import_module("vllm.platforms")
    monkeypatch.setattr(place, "current_platform", SimpleNamespace(device_type=""))
    vllm_causal.load.cache_clear()
    with pytest.raises(UserError, match=r"needs a GPU.*ctranslate2"):
        reader().load()


def test_a_missing_package_is_told(
    reader: Callable[..., CausalLM], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the extra."""
    monkeypatch.setitem(sys.modules, "vllm", None)
    vllm_causal.load.cache_clear()
    with pytest.raises(UserError, match=r"pip install 'leporello\[vllm\]'"):
        reader().load()
