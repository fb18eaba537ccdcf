"""Readers that ONNX Runtime computes: the answers of transformers, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import torch
from tiny_models import STORY, network, save, tokenizer

from leporello.api import run
from leporello.errors import UserError
from leporello.identity import identity
from leporello.models import cache_directory
from leporello.records import Document, Output, Read
from readers import CausalLM, Seq2Seq, onnxruntime_graphs, onnxruntime_models

pytest.importorskip("onnxruntime")

AnyReader: TypeAlias = Seq2Seq | CausalLM
DOCUMENT = Document("story", " ".join([STORY] * 4), title="Puss in Boots")
CAUSAL = ("gpt2", "llama", "chat")
RULES = {"num_beams": 3, "repetition_penalty": 1.3, "no_repeat_ngram_size": 3}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Returns where a tiny model lies, making it at its first use.

    `-ending` makes one that often ends: its end token is likened to the others.
    """
    base = tmp_path_factory.mktemp("models")

    def place(name: str) -> str:
        where, kind = base / name, name.removesuffix("-ending")
        if where.exists():
            return str(where)
        if kind == name:
            save(name, where)
        else:
            torch.manual_seed(0)
            words = tokenizer("<s> $A", chat=False)
            model: Any = network(kind, len(words))
            rows = model.get_output_embeddings().weight.data
            rows[1] = rows[20:60].mean(0) * 16
            model.save_pretrained(where)
            words.save_pretrained(where)
        return str(where)

    return place


@pytest.fixture(scope="session")
def reader(folder: Callable[[str], str]) -> Callable[..., AnyReader]:
    """Returns a reader with a tiny model."""

    def built(name: str, **parameters: Any) -> AnyReader:
        kind = CausalLM if name.removesuffix("-ending") in CAUSAL else Seq2Seq
        limits = {"max_input_tokens": 160, "max_new_tokens": 8, "device": "cpu"}
        return kind(folder(name), **{**limits, **parameters})

    return built


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One cache for all tests that do not look into it: each model is exported once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def kept(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has models exported into that cache."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(exported))


def reads(choices: bool = True) -> list[Read]:
    """Returns inputs of many lengths, doubled ones too, and some with choices."""
    few = tuple(DOCUMENT.chunk(i, i + 40) for i in range(0, 160, 40))
    same = Read(few[:1], "Who had a cat?")
    found = [same, Read(few[:3], "長靴?"), Read(("a",), "Why?"), same]
    found += [Read((DOCUMENT.chunk(k, k + 7 * k % 90 + 3),), f"{k}?") for k in range(0, 120, 15)]
    scored = [Read(few[:2], "Who took the mill?", choices=("the eldest", "a cat", "🐈"))]
    scored.append(Read(few, "Who?", choices=("x", "the cat's boots 👢, and a donkey")))
    return found + scored * choices


def both(made: Callable[..., AnyReader], inputs: list[Read]) -> list[list[Output]]:
    """Returns what each backend answers."""
    return [made(backend=each).read(inputs) for each in ("transformers", "onnxruntime")]


def check_same(theirs: list[Output], ours: list[Output]) -> None:
    """Fails where outputs differ, or their scores by more than 1e-4."""
    for one, other in zip(theirs, ours, strict=True):
        assert (other.text, other.output_tokens) == (one.text, one.output_tokens)
        assert other.score == pytest.approx(one.score, abs=1e-4)
        assert other.scores == pytest.approx(one.scores, abs=1e-4)


@pytest.mark.parametrize("name", ["t5", "bart-ending", "gpt2", "chat"])
def test_the_same_is_written_and_scored(name: str, reader: Callable[..., AnyReader]) -> None:
    """Texts, scores and scores of choices are transformers', whatever lengths stand together."""
    check_same(*both(partial(reader, name, max_new_tokens=12), reads()))


@pytest.mark.parametrize("name", ["t5", "gpt2"])
def test_beams_and_their_rules_are_the_same(name: str, reader: Callable[..., AnyReader]) -> None:
    """Nothing is refused: searching is transformers' own, whatever its rules."""
    written = reads(choices=False)
    check_same(*both(partial(reader, name, **RULES, max_new_tokens=10), written))
    early = {"num_beams": 2, "early_stopping": True, "min_new_tokens": 3, "length_penalty": 2.0}
    check_same(*both(partial(reader, name, **early), written))


def test_stop_strings_stop(reader: Callable[..., AnyReader]) -> None:
    """They end a text as they do with transformers, and are seen to end some."""
    outputs = both(partial(reader, "llama", stop=("o", "\n"), max_new_tokens=12), reads())
    check_same(*outputs)
    assert len({output.output_tokens for output in outputs[1]}) > 2


@pytest.mark.parametrize(
    ("name", "parameters", "told"),
    [
        ("led", {}, "does not run 'led'.*it runs bart, "),
        ("t5", {"dtype": "bfloat16"}, "dtype 'bfloat16': backend onnxruntime computes in float32"),
        ("llama", {"dtype": "auto"}, "dtype 'auto': backend onnxruntime computes in float32 only"),
    ],
)
def test_what_is_not_run_is_refused(
    name: str, parameters: dict[str, Any], told: str, reader: Callable[..., AnyReader]
) -> None:
    """It is told when a pipeline is checked, before anything is loaded; transformers runs it."""
    assert reader(name, **parameters)
    with pytest.raises(ValueError, match=told):
        reader(name, backend="onnxruntime", **parameters)


def test_int8_is_refused(folder: Callable[[str], str]) -> None:
    """There is a backend that keeps the quality, which the message names."""
    with pytest.raises(ValueError, match="in float32 only; ctranslate2 has int8"):
        CausalLM(folder("gpt2"), backend="onnxruntime", dtype="int8")


def test_it_runs_on_the_cpu_only(reader: Callable[..., AnyReader]) -> None:
    """Another device is the user's mistake, and not passed over."""
    with pytest.raises(UserError, match="runs on the CPU, not on device 'cuda'"):
        reader("t5", backend="onnxruntime", device="cuda").load()


@pytest.mark.parametrize("package", ["onnxruntime", "onnx"])
def test_a_missing_package_is_told(
    package: str, reader: Callable[..., AnyReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the extra."""
    monkeypatch.setitem(sys.modules, package, None)
    onnxruntime_models.load.cache_clear()
    with pytest.raises(UserError, match=r"pip install -e '\.\[onnxruntime\]'"):
        reader("t5", backend="onnxruntime").load()


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; returns where its models would lie."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(tmp_path / "cache"))
    onnxruntime_models.load.cache_clear()
    return cache_directory() / "models"


def test_a_model_is_exported_once(
    fresh: Path, reader: Callable[..., AnyReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later processes take what is there, which may not be written to."""
    reader("gpt2", backend="onnxruntime").load()
    (kept,) = fresh.glob("[!.]*/")
    assert all(file.stat().st_mode & 0o222 == 0 for file in kept.iterdir())
    onnxruntime_models.load.cache_clear()
    monkeypatch.setattr(onnxruntime_models, "_export", None)
    reader("gpt2", backend="onnxruntime").load()


def test_an_export_that_differs_is_refused(
    fresh: Path, reader: Callable[..., AnyReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is compared with the original, and leaves nothing where it computes something else."""
    export = onnxruntime_graphs.export

    def spoilt(model: Any, graph: Any, folder: Path) -> None:
        with torch.no_grad():
            model.get_output_embeddings().weight.mul_(1.05)
        export(model, graph, folder)

    monkeypatch.setattr(onnxruntime_models, "export", spoilt)
    with pytest.raises(UserError, match="differs from the original, by"):
        reader("gpt2", backend="onnxruntime").load()
    assert not [*fresh.glob("*/"), *fresh.glob(".*/")]


def test_the_backend_is_part_of_what_results_depend_on(
    reader: Callable[..., AnyReader],
) -> None:
    """Outputs of one are never taken for the other's."""
    made = [reader("t5"), reader("t5", backend="onnxruntime")]
    assert len({json.dumps(identity(each), sort_keys=True) for each in made}) == 2


def test_runs_agree(folder: Callable[[str], str], tmp_path: Path) -> None:
    """What is written of a run is the same to the byte."""
    config = tmp_path / "mine.yaml"
    config.write_text(
        f"""
pipelines:
  mine:
    chunker: {{class: FixedTokens, size: 40}}
    retriever: {{class: TfIdf, k: 2}}
    reader: {{class: Seq2Seq, model: {folder("t5")}, max_input_tokens: 200, max_new_tokens: 8,
             device: cpu, backend: [transformers, onnxruntime]}}
""",
        encoding="utf-8",
    )
    run(["mine"], ["sample"], config=[config], out=tmp_path / "runs", limit=6)
    written = [*tmp_path.glob("runs/*/sample/predictions.jsonl")]
    assert len(written) == 2
    assert len({place.read_bytes() for place in written}) == 1
