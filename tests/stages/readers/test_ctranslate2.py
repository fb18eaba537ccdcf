"""Tests that readers with CTranslate2 have the outputs of transformers, or are refused."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import tiny_models
import torch
import transformers
from tiny_models import STORY, network, save, tokenizer

from leporello.core.errors import UserError
from leporello.core.records import Document, Output, Read
from leporello.models.locate import cache_directory
from leporello.readers import CausalLM, Seq2Seq
from leporello.readers.backends.ctranslate2 import conversion as ctranslate2_conversion
from leporello.readers.backends.ctranslate2 import models as ctranslate2_models
from leporello.readers.backends.pretrained import load_model

pytest.importorskip("ctranslate2")

AnyReader: TypeAlias = Seq2Seq | CausalLM
DOCUMENT = Document("story", " ".join([STORY] * 4), title="Puss in Boots")
SEQ2SEQ = ("t5", "t5-untied", "mt5", "bart", "bart-forced", "pegasus", "mbart", "m2m_100", "marian")
CAUSAL = ("gpt2", "llama", "chat", "mistral", "qwen2", "qwen3")
BEAMS = {"num_beams": 3, "early_stopping": True}

# Shapes of models that are not in `tiny_models`.
ENDS = {"bos_token_id": 3, "pad_token_id": 0, "eos_token_id": 1}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 2}
T5 |= {"decoder_start_token_id": 0}
BART: dict[str, Any] = {"d_model": 32, "init_std": 0.3, "decoder_start_token_id": 1}
for half in ("encoder", "decoder"):
    BART |= {f"{half}_layers": 2, f"{half}_attention_heads": 2, f"{half}_ffn_dim": 64}
BART |= {"max_position_embeddings": 256}
LLAMA = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 8}
LLAMA |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "t5-untied": ("T5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "mt5": ("MT5", T5),
    "bart-forced": ("Bart", {**BART, "forced_bos_token_id": 3, "forced_eos_token_id": 1}),
    "pegasus": ("Pegasus", {**BART, "decoder_start_token_id": 0}),
    "mbart": ("MBart", {**BART, "forced_eos_token_id": 1}),
    # Positions start from the id of the padding, which must be 1.
    "m2m_100": (
        "M2M100",
        {**BART, "pad_token_id": 1, "eos_token_id": 0, "decoder_start_token_id": 0},
    ),
    "marian": ("Marian", {**BART, "bos_token_id": None}),
    "mistral": ("Mistral", {**LLAMA, "initializer_range": 0.3, "sliding_window": None}),
    "qwen2": ("Qwen2", {**LLAMA, "initializer_range": 0.3}),
    "qwen3": ("Qwen3", {**LLAMA, "initializer_range": 0.3}),
    "sliding": ("Mistral", {**LLAMA, "sliding_window": 20}),
}


def model_of(name: str, vocabulary: int) -> Any:
    """Returns a tiny model with random weights."""
    if name not in SHAPES:
        return network(name, vocabulary)
    family, shape = SHAPES[name]
    if name == "marian":  # padding is the last id, and begins every text
        last = {"pad_token_id": vocabulary, "decoder_start_token_id": vocabulary}
        shape = {**shape, **last, "decoder_vocab_size": vocabulary + 1}
        vocabulary += 1
    head = "MTModel" if name == "marian" else "ForConditionalGeneration"
    head = "ForCausalLM" if name in CAUSAL or name == "sliding" else head
    config = getattr(transformers, f"{family}Config")(**{"vocab_size": vocabulary, **ENDS, **shape})
    return getattr(transformers, f"{family}{head}")(config)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Returns a function that returns the path of a tiny model, and creates it when needed.

    A model with the suffix `-ending` ends texts often, as its end token is similar to others.
    """
    base = tmp_path_factory.mktemp("models")

    def place(name: str) -> str:
        where, kind = base / name, name.removesuffix("-ending")
        if where.exists():
            return str(where)
        if kind in ("t5", "bart", "gpt2", "llama", "chat", "led") and kind == name:
            save(name, where)
            return str(where)
        with pytest.MonkeyPatch.context() as patched:
            if name == "m2m_100":
                first = ["</s>", "<pad>", *tiny_models.SPECIAL[2:]]
                patched.setattr(tiny_models, "SPECIAL", first)
            plain = ("t5", "t5-untied", "mt5", "pegasus", "marian")
            template = "$A </s>" if kind in plain else "<s> $A </s>"
            words = tokenizer("<s> $A" if kind in (*CAUSAL, "sliding") else template, chat=False)
        torch.manual_seed(0)
        model = model_of(kind, len(words))
        if kind != name:
            rows = model.get_output_embeddings().weight.data
            rows[1] = rows[20:60].mean(0) * 16
        model.save_pretrained(where)
        words.save_pretrained(where)
        return str(where)

    return place


@pytest.fixture(scope="session")
def reader(folder: Callable[[str], str]) -> Callable[..., AnyReader]:
    """Returns a function that returns a reader with a tiny model."""

    def built(name: str, **parameters: Any) -> AnyReader:
        kind = CausalLM if name.removesuffix("-ending") in (*CAUSAL, "sliding") else Seq2Seq
        defaults = {"max_input_tokens": 160, "max_new_tokens": 8, "device": "cpu"}
        return kind(folder(name), **{**defaults, **parameters})

    return built


def reads() -> list[Read]:
    """Returns reads without passages, empty, duplicate, with choices and of many lengths."""
    few = tuple(DOCUMENT.chunk(i, i + 40) for i in range(0, 160, 40))
    duplicate = Read(few[:1], "Who had a cat?")
    inputs = [duplicate, Read(few[:3], "長靴?"), Read((), "Why?"), Read(("",), "Why?"), duplicate]
    inputs += [Read((DOCUMENT.chunk(k, k + 7 * k % 90 + 3),), f"{k}?") for k in range(0, 200, 15)]
    choices = ("the eldest", "a cat", "🐈")
    inputs.append(Read(few[:2], "Who took the mill?", choices=choices))
    inputs.append(Read(few, "Who?", choices=("x", "the cat's boots 👢, and a donkey")))
    return inputs


def same(first: Output, second: Output) -> bool:
    """Returns whether outputs are equal, with scores within 1e-4."""
    assert first.score == pytest.approx(second.score, abs=1e-4)
    assert first.scores == pytest.approx(second.scores, abs=1e-4)
    return dataclasses.replace(first, score=second.score, scores=second.scores) == second


def both(reader: Callable[..., AnyReader], name: str, **parameters: Any) -> list[list[Output]]:
    """Returns the outputs of each backend."""
    backends = ("transformers", "ctranslate2")
    return [reader(name, backend=backend, **parameters).read(reads()) for backend in backends]


@pytest.mark.parametrize("name", [*SEQ2SEQ, *CAUSAL])
def test_backends_have_equal_outputs(name: str, reader: Callable[..., AnyReader]) -> None:
    """Outputs include texts, scores of texts and choices, coverage and numbers of tokens."""
    expected, outputs = both(reader, name)
    assert len({output.text for output in expected}) > 2 or name == "marian"
    assert all(map(same, outputs, expected))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("t5", {"min_new_tokens": 8}),
        ("t5", {"no_repeat_ngram_size": 2, "max_new_tokens": 20}),
        ("t5", {"repetition_penalty": 1.3}),
        ("bart-ending", {"max_new_tokens": 20}),
        ("bart-ending", {"no_repeat_ngram_size": 2, "max_new_tokens": 20}),
        ("bart-ending", {"min_new_tokens": 6}),
        ("bart-forced", {"max_new_tokens": 1}),
        ("bart-forced", {"min_new_tokens": 8}),
        ("chat", {"stop": ("a", "e"), "max_new_tokens": 20}),
        ("chat", {"system": "Be brief.", "batch_tokens": 200}),
        ("gpt2-ending", {"max_new_tokens": 20}),
        ("llama-ending", {"stop": ("a", "t"), "max_new_tokens": 20, "min_new_tokens": 3}),
    ],
)
def test_options_have_the_same_effect_in_both_backends(
    name: str, parameters: dict[str, Any], reader: Callable[..., AnyReader]
) -> None:
    """These are the options of generation that are not refused."""
    expected, outputs = both(reader, name, **parameters)
    assert all(map(same, outputs, expected))


@pytest.mark.parametrize("length_penalty", [1.0, 2.0, 0.0])
@pytest.mark.parametrize(
    "name",
    [
        "t5",
        "bart-ending",
        "bart-forced",
        "bart-forced-ending",
        "gpt2-ending",
        "llama-ending",
        "pegasus",
    ],
)
def test_beam_search_has_the_same_results_in_both_backends(
    name: str, length_penalty: float, reader: Callable[..., AnyReader]
) -> None:
    """It must stop early."""
    expected, outputs = both(
        reader, name, **BEAMS, length_penalty=length_penalty, max_new_tokens=12
    )
    assert all(map(same, outputs, expected))


def test_every_end_token_ends_a_text(folder: Callable[[str], str], tmp_path: Path) -> None:
    """Models such as Llama 3 have several."""
    place = tmp_path / "several"
    shutil.copytree(folder("llama"), place)
    torch_reader = CausalLM(str(place), max_input_tokens=160, max_new_tokens=12, device="cpu")
    tokens = torch_reader._model.generate(torch.tensor([[3, 70, 80]]), max_new_tokens=40)[0, 3:]
    settings = json.loads((place / "generation_config.json").read_text(encoding="utf-8"))
    settings["eos_token_id"] = [1, *tokens.tolist()]
    (place / "generation_config.json").write_text(json.dumps(settings), encoding="utf-8")
    load_model.cache_clear()
    torch_reader, other_reader = (
        dataclasses.replace(torch_reader, backend=b) for b in ("transformers", "ctranslate2")
    )
    expected = torch_reader.read(reads())
    assert all(map(same, other_reader.read(reads()), expected))
    assert any(0 < output.output_tokens < 12 for output in expected)


@pytest.mark.parametrize("name", ["t5", "bart", "gpt2", "llama"])
def test_scores_with_int8_are_close(name: str, reader: Callable[..., AnyReader]) -> None:
    """They differ by at most a quarter on average; rounding depends on the processor."""
    read = [read for read in reads() if read.choices]
    exact, rough = (
        np.array([score for output in variant.read(read) for score in output.scores])
        for variant in (reader(name, backend="ctranslate2", dtype=d) for d in ("float32", "int8"))
    )
    assert 1e-4 < np.abs(exact - rough).mean() < np.abs(exact).mean() / 4
    assert reader(name, backend="ctranslate2", dtype="int8").read(reads())[0].text


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("led", {}, "does not run 'led'.*it runs bart, "),
        ("t5", {"num_beams": 2}, "set early_stopping: true"),
        ("t5", {**BEAMS, "min_new_tokens": 2}, "min_new_tokens: .*omit it"),
        ("t5", {**BEAMS, "no_repeat_ngram_size": 3}, "no_repeat_ngram_size: .*omit it"),
        ("t5", {**BEAMS, "repetition_penalty": 1.2}, "repetition_penalty: .*omit it"),
        ("bart", {"repetition_penalty": 1.2}, "repetition_penalty: .*begin with their end"),
        ("bart", {"no_repeat_ngram_size": 1}, "no_repeat_ngram_size: .*begin with their"),
        ("llama", {**BEAMS, "stop": ("a",)}, "stop: .*omit it"),
        ("llama", {"no_repeat_ngram_size": 3}, "no_repeat_ngram_size: .*tokens of the prompt"),
        ("llama", {"repetition_penalty": 1.2}, "repetition_penalty: .*tokens of the prompt"),
    ],
)
def test_options_with_other_effects_are_refused(
    name: str, parameters: dict[str, Any], message: str, reader: Callable[..., AnyReader]
) -> None:
    """The constructor raises the error; transformers supports them."""
    reader(name, **parameters)
    with pytest.raises(ValueError, match=message):
        reader(name, backend="ctranslate2", **parameters)


def test_int8_requires_ctranslate2(reader: Callable[..., AnyReader]) -> None:
    """Torch has no 8-bit precision of the same quality."""
    for name in ("t5", "llama"):
        with pytest.raises(ValueError, match="dtype 'int8' needs backend: ctranslate2"):
            reader(name, dtype="int8")


def test_unavailable_precisions_and_devices_are_reported(reader: Callable[..., AnyReader]) -> None:
    """The error contains the fix."""
    for parameters in ({"dtype": "bfloat16"}, {"device": "abacus"}, {"device": "cpu:one"}):
        with pytest.raises(UserError, match=r"cannot run a model with .*'auto' uses an available"):
            reader("t5", backend="ctranslate2", **parameters).load()


def test_the_error_for_a_missing_package_names_the_extra(
    reader: Callable[..., AnyReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error contains the command that installs it."""
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    ctranslate2_models.load.cache_clear()
    with pytest.raises(UserError, match=r"pip install 'leporello\[ctranslate2\]'"):
        reader("t5", backend="ctranslate2").load()


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder for models in an empty cache."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    ctranslate2_models.load.cache_clear()
    return cache_directory() / "models"


def test_a_model_is_converted_once(
    fresh: Path, reader: Callable[..., AnyReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other precisions and processes use the same files, which are read-only."""
    reader("t5", backend="ctranslate2").load()
    (converted,) = fresh.glob("[!.]*/")
    assert all(file.stat().st_mode & 0o222 == 0 for file in converted.iterdir())
    ctranslate2_models.load.cache_clear()
    monkeypatch.setattr(ctranslate2_conversion, "_convert", None)
    reader("t5", backend="ctranslate2").load()
    reader("t5", backend="ctranslate2", dtype="int8").load()


def test_a_model_whose_conversion_differs_is_refused(
    fresh: Path, reader: Callable[..., AnyReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each conversion is compared with the original, and removed if it differs."""
    with pytest.raises(UserError, match="sliding-window"):
        reader("sliding", backend="ctranslate2").load()
    monkeypatch.setattr(ctranslate2_conversion, "_prepare", lambda _: None)
    with pytest.raises(UserError, match="differs from that of the original"):
        reader("t5-untied", backend="ctranslate2").load()
    assert not [*fresh.glob("*/"), *fresh.glob(".*/")]
