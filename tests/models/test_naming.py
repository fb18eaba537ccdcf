"""A model by one word: which reader it gets, and what is told where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello
from endpoint_server import Asked, running, say

from leporello.config import Spec, load_config
from leporello.core.errors import UserError
from leporello.models import servers
from leporello.models.inventory import known_models
from leporello.models.locate import model_fingerprint
from leporello.models.naming import local_model, resolve
from leporello.models.servers import LocalServer


def folder(place: Path, **config: Any) -> Path:
    """Writes a model's folder as far as its JSON goes."""
    place.mkdir()
    (place / "config.json").write_text(json.dumps({"model_type": "any", **config}))
    return place


def reader_of(word: str, pipeline: str = "default", *settings: str) -> Spec:
    """Returns the reader that a pipeline has with `--model WORD`."""
    config = load_config((), [*settings, f"model={json.dumps(word)}"], [pipeline])
    [point] = config.select([pipeline])
    return point.stages["reader"]


@pytest.mark.parametrize(
    ("architecture", "readers", "window"),
    [
        ("RobertaForQuestionAnswering", ("Extractive",), 514),
        ("LlamaForCausalLM", ("CausalLM", "LogLikelihood"), 8192),
        ("GPT2LMHeadModel", ("CausalLM", "LogLikelihood"), 514),
        ("BartForConditionalGeneration", ("Seq2Seq",), 514),
        ("Gemma3ForConditionalGeneration", ("CausalLM", "LogLikelihood"), 514),
        ("MarianMTModel", ("Seq2Seq",), 514),
    ],
)
def test_readers_are_chosen_by_architecture(
    tmp_path: Path, architecture: str, readers: tuple[str, ...], window: int
) -> None:
    """What config.json says is enough, and no window is longer than a processor bears."""
    config: dict[str, Any] = {"architectures": [architecture], "max_position_embeddings": 514}
    config["is_encoder_decoder"] = architecture.startswith(("Bart", "Marian"))
    if architecture.startswith("Llama"):
        config["max_position_embeddings"] = 131_072
    found = local_model(folder(tmp_path / "model", **config))
    assert (found.readers, found.window) == (readers, window)


def test_a_pipeline_keeps_what_it_says_of_any_reader(tmp_path: Path) -> None:
    """Of a reader of another class its prompt holds, its model's own settings do not."""
    gpt = folder(tmp_path / "gpt", architectures=["GPT2LMHeadModel"], n_positions=300)
    same = reader_of(str(gpt), "ask-smollm2").params
    assert same["system"].startswith("You answer")
    assert (same["stop"], same["max_input_tokens"]) == (("\n",), 300 - 64)
    other = reader_of(str(gpt), "zero-scrolls-endpoint", "reader.dtype=bfloat16")
    assert (other.name, other.params["prompt"]) == ("CausalLM", "{context}")
    assert other.params["dtype"] == "bfloat16"
    assert {"api_key", "base_url"}.isdisjoint(other.params)
    with pytest.raises(UserError, match=r"command line: default: model .* no reader supports"):
        reader_of(str(folder(tmp_path / "bert", architectures=["BertForMaskedLM"])))


def test_services_are_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its address, its protocol and the variable of its key, which must be set."""
    reader = reader_of("openai:gpt-4.1-mini")
    assert reader.params["base_url"] == "https://api.openai.com/v1"
    assert "temperature" not in reader.params
    assert reader_of("openai:o5").params["temperature"] is None
    claude = reader_of("anthropic:claude-x")
    assert (claude.params["mode"], claude.params["base_url"]) == (
        "messages", "https://api.anthropic.com/v1"
    )  # fmt: skip
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UserError, match="variable ANTHROPIC_API_KEY is not set"):
        claude.build()
    with pytest.raises(UserError, match="embeds texts"):
        reader_of("all-minilm-l6-v2")
    with pytest.raises(UserError, match=r"compares scores, .* add --set combiner.keep=vote"):
        reader_of("openai:gpt-4.1", "ask-smollm2")
    assert reader_of("openai:gpt-4.1", "ask-smollm2", "combiner.keep=vote").name == "Endpoint"


def serve(asked: Asked) -> None:
    """Behaves as Ollama does, or vLLM."""
    answers: dict[str, Any] = {
        "/v1/models": {"data": [{"id": "llama3.2:latest"}, {"id": "qwen", "max_model_len": 900}]},
        "/api/show": {"parameters": "stop x\nnum_ctx     6000"},
    }
    if asked.path in answers:
        asked.send(json.dumps(answers[asked.path]).encode())
    else:
        say(asked, "Ann Dunning")


def test_servers_are_asked_what_they_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may lack its tag, and the window is the server's; a file asks nobody."""
    file = tmp_path / "ferry.txt"
    file.write_text("Ann Dunning found the fax. " * 9)
    with running(serve) as server:
        port = int(server.base_url.rpartition(":")[2].partition("/")[0])
        ollama = LocalServer("Ollama", port, "ollama serve")
        monkeypatch.setitem(servers.SERVERS, "ollama", ollama)
        reader = reader_of("ollama:llama3.2")
        assert reader.params["model"] == "llama3.2:latest"
        assert reader.params["max_input_tokens"] == 6000 - 1024
        assert reader_of(f"{server.base_url}#qwen").params["max_input_tokens"] == 450
        with pytest.raises(UserError, match=r"no such model; it has: llama3.2:latest, qwen"):
            resolve(server.base_url)
        with pytest.raises(UserError, match="did you mean 'qwen'; allowed: llama3"):
            resolve("ollama:qven")
        done = leporello("ask", file, "Who found it?", "--model", f"{server.base_url}#qwen")
        assert done.stdout.startswith("Ann Dunning\n")
        asked = len(server.asked)
        (tmp_path / "own.yaml").write_text(
            f"pipelines: {{own: {{extends: default, model: '{server.base_url}#qwen'}}}}"
        )
        [own] = load_config([tmp_path / "own.yaml"]).select(["own"])
        assert own.stages["reader"].params["model"] == "qwen"
        assert len(server.asked) == asked
    with pytest.raises(UserError, match=r"answers at .*; start Ollama with `ollama serve`"):
        resolve("ollama:llama3.2")


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("a/b/c", "neither a path that is there nor a hub id"),
        ("No Such", "did you mean|a model is the path"),
        ("x" * 300, "x…' is neither"),
        ("/", "the folder holds 10,000 files and more"),
        ("https://", "no model server answers"),
        ("olama:llama3", "did you mean 'ollama'"),
        ("openai:", "name the model, openai:MODEL"),
        ("a\0b", "neither a path"),
        ("leporello_en.gguf", "no such file .* did you mean 'leporello-en'"),
    ],
)
def test_a_word_that_means_nothing_is_told(word: str, told: str) -> None:
    """In a sentence, with what was likely meant, and without a walk over the disk."""
    with pytest.raises(UserError, match=told):
        reader_of(word)
    with pytest.raises(UserError):  # as a parameter of any stage too
        model_fingerprint(word)


def test_what_is_on_this_machine_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes along, the hub's cache, folders and servers, each with the word that names it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    kept = tmp_path / "hub" / "models--me--t5"
    (kept / "snapshots").mkdir(parents=True)
    config = {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5"}
    folder(kept / "snapshots" / "abc", is_encoder_decoder=True, **config)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc")
    own = tmp_path / "own"
    own.mkdir()
    folder(own / "bert", architectures=["BertForQuestionAnswering"], max_position_embeddings=512)
    with running(serve) as server:
        port = int(server.base_url.rpartition(":")[2].partition("/")[0])
        nobody = {kind: LocalServer(kind, 9, "") for kind in servers.SERVERS}
        known = {**nobody, "ollama": LocalServer("Ollama", port, "")}
        monkeypatch.setattr(servers, "SERVERS", known)
        monkeypatch.setattr("leporello.models.inventory.SERVERS", known)
        found = {m.name: (m.reader, m.window) for m in known_models([own])}
    assert found["leporello-en"] == ("Embedded", None)
    assert found["smollm2-135m-instruct"] == ("CausalLM", 8192)
    assert found["answerai-colbert-small"] == ("", None)
    assert found["me/t5"] == ("Seq2Seq", 512)
    assert found[str(own / "bert")] == ("Extractive", 512)
    assert found["ollama:llama3.2:latest"] == ("Endpoint", 6000)
    assert found["vllm:"] == ("", None)
