"""Tests that CausalLM with vLLM has the outputs of transformers.

If vLLM is not installed, a stand-in with the part of its interface that is used here computes with
transformers.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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


DEFAULTS = {"min_tokens": 0, "repetition_penalty": 1.0, "stop": (), "stop_token_ids": (),
            "logprobs": None, "prompt_logprobs": None, "detokenize": True}  # fmt: skip


def sampling_params(*, temperature: float, **options: Any) -> Any:
    """Stand-in for vLLM's class `SamplingParams`, with greedy decoding."""
    params = SimpleNamespace(**{**DEFAULTS, **options})
    assert {*vars(params)} == {"max_tokens", *DEFAULTS}
    assert temperature == 0
    assert params.detokenize or not params.stop
    return params


class LLM:
    """Stand-in for vLLM's class, which computes prompts one by one, without a cache."""

    def __init__(self, *, model: str, dtype: str, **options: Any) -> None:
        required = {
            "load_format": "safetensors", "generation_config": "vllm", "trust_remote_code": False,
            "enable_prefix_caching": False, "max_model_len": -1,
            "logprobs_mode": "processed_logprobs",
        }  # fmt: skip
        assert options.items() >= required.items()
        assert options.keys() - required.keys() == {"disable_log_stats", "seed"}
        if dtype not in ("float32", "bfloat16", "float16"):
            raise ValueError(f"Unknown dtype: {dtype}")
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=dtype)
        self.text = tokenizer("<s> $A", chat=False)
        self.earlier: list[Any] = []
        self.calls: list[int] = []  # number of prompts of each call

    def generate(
        self, prompts: Sequence[Mapping[str, Any]], params: Any, *, use_tqdm: bool
    ) -> list[Any]:
        """Returns results for earlier prompts under way, then for each prompt."""
        assert not use_tqdm
        self.calls.append(len(prompts))
        with torch.inference_mode():
            results = [self._result(prompt["prompt_token_ids"], params) for prompt in prompts]
        earlier, self.earlier = self.earlier, []
        return earlier + results

    def _result(self, prompt: list[int], params: Any) -> Any:
        ids, steps, scored = list(prompt), list[Any](), None
        if params.prompt_logprobs == 0:
            rows = self.model(torch.tensor([ids])).logits[0].log_softmax(-1)
            scored = [None, *map(step, rows, ids[1:])]
        while len(ids) - len(prompt) < params.max_tokens:
            logits = self.model(torch.tensor([ids])).logits[0, -1]
            used = torch.tensor(sorted(set(ids)))
            factor = torch.full_like(logits[used], params.repetition_penalty)
            logits[used] *= torch.where(logits[used] > 0, 1 / factor, factor)
            if len(ids) - len(prompt) < params.min_tokens:
                logits[torch.tensor(params.stop_token_ids)] = -torch.inf
            ids.append(int(logits.argmax()))
            steps.append(step(logits.log_softmax(-1), ids[-1]))
            text = self.text.decode(ids[len(prompt) :], skip_special_tokens=True)
            if ids[-1] in params.stop_token_ids or any(stop in text for stop in params.stop):
                break
        output = SimpleNamespace(token_ids=ids[len(prompt) :], logprobs=steps)
        return SimpleNamespace(prompt_logprobs=scored, outputs=[output])


def step(log_probabilities: torch.Tensor, token: int) -> dict[int, Any]:
    """Returns the log-probability of a token in vLLM's format."""
    return {token: SimpleNamespace(logprob=float(log_probabilities[token]))}


def stand_in() -> dict[str, ModuleType]:
    """Returns the modules of the stand-in for vLLM."""
    parts: dict[str, dict[str, Any]] = {
        "vllm": {"LLM": LLM, "SamplingParams": sampling_params, "__path__": []},
        "vllm.inputs": {"TokensPrompt": dict},
        "vllm.platforms": {"current_platform": SimpleNamespace(device_type="cpu")},
    }
    modules = {name: ModuleType(name) for name in parts}
    for name, content in parts.items():
        vars(modules[name]).update(content, __spec__=ModuleSpec(name, loader=None))
    return modules


@pytest.fixture(autouse=True, scope="module")
def vllm() -> Iterator[None]:
    """Installs the stand-in unless vLLM is installed."""
    with pytest.MonkeyPatch.context() as patched:
        if not importlib.util.find_spec("vllm"):
            for name, module in stand_in().items():
                patched.setitem(sys.modules, name, module)
        yield
    vllm_causal.load.cache_clear()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folder of a tiny Llama that often ends its texts, with heads of a size that vLLM supports."""
    where = tmp_path_factory.mktemp("llama")
    words = tokenizer("<s> $A", chat=False)
    torch.manual_seed(0)
    shape: dict[str, Any] = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 512}
    shape |= {"bos_token_id": 3, "pad_token_id": 0, "eos_token_id": 1, "vocab_size": len(words)}
    network = LlamaForCausalLM(LlamaConfig(**shape, initializer_range=0.3))
    rows = network.lm_head.weight.data
    rows[1] = rows[20:60].mean(0) * 16
    network.save_pretrained(where)
    words.save_pretrained(where)
    return str(where)


@pytest.fixture(scope="module")
def reader(model: str) -> Callable[..., CausalLM]:
    def built(**parameters: Any) -> CausalLM:
        limits = {"max_input_tokens": 160, "max_new_tokens": 10, "backend": "vllm"}
        return CausalLM(model, **{**limits, **parameters})

    return built


def reads() -> list[Read]:
    """Returns inputs of several lengths, also with choices."""
    few = tuple(DOCUMENT.chunk(i, i + 40) for i in range(0, 160, 40))
    inputs = [Read(few[:1], "Who had a cat?"), Read(few[:3], "長靴?"), Read(("a",), "Why?")]
    inputs += [Read((DOCUMENT.chunk(k, k + 7 * k % 90 + 3),), f"{k}?") for k in range(0, 120, 15)]
    inputs.append(Read(few[:2], "Who took the mill?", choices=("the eldest", "a cat", "🐈")))
    return [*inputs, Read(few, "Who?", choices=("x", "the cat's boots 👢, and a donkey"))]


def check_same(expected: list[Output], outputs: list[Output]) -> None:
    """Asserts that outputs are equal, with scores within 1e-4."""
    for right, output in zip(expected, outputs, strict=True):
        assert (output.text, output.output_tokens) == (right.text, right.output_tokens)
        assert output.score == pytest.approx(right.score, abs=1e-4)
        assert output.scores == pytest.approx(right.scores, abs=1e-4)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"repetition_penalty": 1.3}, {"min_new_tokens": 6}, {"stop": ("o", " t", "\n")}],
)
def test_outputs_equal_those_of_transformers(
    parameters: dict[str, Any], reader: Callable[..., CausalLM]
) -> None:
    expected = reader(backend="transformers", device="cpu", **parameters).read(reads())
    check_same(expected, reader(**parameters).read(reads()))
    assert len({output.output_tokens for output in expected}) > 3


def test_all_prompts_are_sent_in_one_call(reader: Callable[..., CausalLM]) -> None:
    """The batches are those of vLLM; only prompts with choices are sent separately."""
    causal = reader(max_new_tokens=1)
    causal.load()
    engine = causal._network.engine
    if not isinstance(engine, LLM):
        pytest.skip("vLLM does not count calls")
    engine.calls.clear()
    generated = [Read((STORY[: n % 90 + 1],), f"Number {n}?") for n in range(256)]
    assert len(causal.read(generated)) == 256
    assert engine.calls == [256]
    with_choices = [Read((STORY[: 9 * n + 1],), "Who?", choices=("a", "the cat")) for n in range(8)]
    assert len(causal.read([*generated[:20], *with_choices])) == 28
    assert engine.calls == [256, 16, 20]
    assert causal.batching is None
    assert causal.schedules_itself
    assert not reader(backend="transformers").schedules_itself


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"batch_tokens": "auto"}, "batch_tokens: vllm takes all prompts at once.*omit"),
        ({"batch_tokens": 8192}, "batch_tokens: vllm takes all prompts at once"),
        ({"num_beams": 3}, "num_beams: vLLM does not support this"),
        ({"no_repeat_ngram_size": 2}, "no_repeat_ngram_size: vLLM does not support this"),
    ],
)
def test_unsupported_options_are_refused(
    parameters: dict[str, Any], message: str, reader: Callable[..., CausalLM]
) -> None:
    with pytest.raises(ValueError, match=message):
        reader(**parameters)


def test_another_device_a_missing_gpu_and_a_missing_package_are_reported(
    reader: Callable[..., CausalLM], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"vllm runs on '.*' here, not on device 'abacus'.*CUDA_"):
        reader(device="abacus").load()
    place = importlib.import_module("vllm.platforms")
    monkeypatch.setattr(place, "current_platform", SimpleNamespace(device_type=""))
    vllm_causal.load.cache_clear()
    with pytest.raises(UserError, match=r"needs a GPU.*transformers"):
        reader().load()
    monkeypatch.setitem(sys.modules, "vllm", None)
    vllm_causal.load.cache_clear()
    with pytest.raises(UserError, match=r"pip install 'leporello\[vllm\]'"):
        reader().load()
