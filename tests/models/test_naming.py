"""Names of models: the readers that they select, and the errors of invalid names."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from command_line import leporello, write_files
from endpoint_server import Request, Server, reply, running

from leporello.config import Spec, load_config
from leporello.core.errors import UserError
from leporello.models import servers
from leporello.models.locate import model_fingerprint
from leporello.models.naming import known_models, local_model, resolve
from leporello.models.servers import LocalServer


def folder(place: Path, **config: Any) -> Path:
    write_files(place, {"config.json": json.dumps({"model_type": "any", **config})})
    return place


def reader_of(word: str, pipeline: str = "default", *settings: str) -> Spec:
    config = load_config((), [*settings, f"model={json.dumps(word)}"], [pipeline])
    [point] = config.select([pipeline])
    return point.stages["reader"]


@pytest.mark.parametrize(
    ("architecture", "readers", "window"),
    [
        ("RobertaForQuestionAnswering", ("Extractive",), 514),
        ("LlamaForCausalLM", ("CausalLM", "LogLikelihood"), 8192),
        ("GPT2LMHeadModel", ("CausalLM", "LogLikelihood"), 514),
        ("Gemma3ForConditionalGeneration", ("CausalLM", "LogLikelihood"), 514),
        ("MarianMTModel", ("Seq2Seq",), 514),
    ],
)
def test_readers_are_chosen_by_architecture(
    tmp_path: Path, architecture: str, readers: tuple[str, ...], window: int
) -> None:
    config: dict[str, Any] = {"architectures": [architecture], "max_position_embeddings": 514}
    config["is_encoder_decoder"] = architecture.startswith(("Bart", "Marian"))
    if architecture.startswith("Llama"):
        config["max_position_embeddings"] = 131_072
    model = local_model(folder(tmp_path / "model", **config))
    assert (model.readers, model.window) == (readers, window)


def test_another_model_keeps_a_pipelines_general_settings(tmp_path: Path) -> None:
    gpt = folder(tmp_path / "gpt", architectures=["GPT2LMHeadModel"], n_positions=300)
    same = reader_of(str(gpt), "ask-smollm2").params
    assert same["system"].startswith("You answer")
    assert (same["stop"], same["max_input_tokens"]) == (("\n",), 300 - 64)
    different = reader_of(str(gpt), "zero-scrolls-endpoint", "reader.dtype=bfloat16")
    assert (different.name, different.params["prompt"]) == ("CausalLM", "{context}")
    assert different.params["dtype"] == "bfloat16"
    assert {"api_key", "base_url"}.isdisjoint(different.params)
    with pytest.raises(UserError, match=r"command line: default: model .* no reader supports"):
        reader_of(str(folder(tmp_path / "bert", architectures=["BertForMaskedLM"])))


def test_services_are_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = reader_of("openai:gpt-4.1-mini")
    assert reader.params["base_url"] == "https://api.openai.com/v1"
    assert "temperature" not in reader.params
    assert reader_of("openai:o5").params["temperature"] is None
    claude = reader_of("anthropic:claude-x")
    assert claude.params["mode"] == "messages"
    assert claude.params["base_url"] == "https://api.anthropic.com/v1"
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UserError, match="variable ANTHROPIC_API_KEY is not set"):
        claude.build()
    with pytest.raises(UserError, match="embeds texts"):
        reader_of("all-minilm-l6-v2")
    with pytest.raises(UserError, match=r"compares scores, .* add --set combiner.keep=vote"):
        reader_of("openai:gpt-4.1", "ask-smollm2")
    assert reader_of("openai:gpt-4.1", "ask-smollm2", "combiner.keep=vote").name == "Endpoint"


LISTED: dict[str, Any] = {
    "/v1/models": {"data": [{"id": "llama3.2:latest"}, {"id": "qwen", "max_model_len": 900}]},
    "/api/show": {"parameters": "stop x\nnum_ctx     6000"},
}


def serve(request: Request) -> None:
    if request.path in LISTED:
        request.send(json.dumps(LISTED[request.path]).encode())
    else:
        reply(request, "Ann Dunning")


def ollama_at(server: Server) -> LocalServer:
    return LocalServer("Ollama", urlsplit(server.base_url).port or 0, "ollama serve")


def test_servers_list_their_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "ferry.txt"
    file.write_text("Ann Dunning found the fax. " * 9)
    with running(serve) as server:
        monkeypatch.setitem(servers.SERVERS, "ollama", ollama_at(server))
        reader = reader_of("ollama:llama3.2")
        assert reader.params["model"] == "llama3.2:latest"
        assert reader.params["max_input_tokens"] == 6000 - 1024
        model = f"{server.base_url}#qwen"
        assert reader_of(model).params["max_input_tokens"] == 450
        with pytest.raises(UserError, match=r"no such model; it has: llama3.2:latest, qwen"):
            resolve(server.base_url)
        with pytest.raises(UserError, match="did you mean 'qwen'; allowed: llama3"):
            resolve("ollama:qven")
        process = leporello("ask", file, "Who found it?", "--model", model)
        assert process.stdout.startswith("Ann Dunning\n")
        count = len(server.requests)
        pipelines = f"pipelines: {{own: {{extends: default, model: '{model}'}}}}"
        write_files(tmp_path, {"own.yaml": pipelines})
        [point] = load_config([tmp_path / "own.yaml"]).select(["own"])
        assert point.stages["reader"].params["model"] == "qwen"
        assert len(server.requests) == count
        calibration = tmp_path / "calibration.json"  # trusts no answer
        calibration.write_text('{"slope": 0.0, "offset": -9.0}')
        doubt = f"reader.calibration={calibration}"
        shown = leporello("ask", file, "Who found it?", "--set", doubt).stdout
        assert f"ask {file} 'Who found it?' --model ollama:llama3.2:latest" in shown
    with pytest.raises(UserError, match=r"answers at .*; start Ollama with `ollama serve`"):
        resolve("ollama:llama3.2")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("a/b/c", "neither an existing path nor a hub id"),
        ("No Such", "did you mean|a model is the path"),
        ("https://", "no model server answers"),
        ("olama:llama3", "did you mean 'ollama'"),
        ("openai:", "name the model, openai:MODEL"),
        ("a\0b", "neither an existing path"),
        ("leporello_en.gguf", "no such file .* did you mean 'leporello-en'"),
    ],
)
def test_an_invalid_name_is_reported(word: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        reader_of(word)
    with pytest.raises(UserError):  # as a parameter of a stage
        model_fingerprint(word)


def test_models_on_this_machine_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    cached = tmp_path / "hub" / "models--me--t5"
    config = {"architectures": ["T5ForConditionalGeneration"], "model_type": "t5"}
    folder(cached / "snapshots" / "abc", is_encoder_decoder=True, **config)
    write_files(cached, {"refs/main": "abc"})
    with running(serve) as server:
        absent = {kind: LocalServer(kind, 9, "") for kind in servers.SERVERS}
        table = {**absent, "ollama": ollama_at(server)}
        monkeypatch.setattr(servers, "SERVERS", table)
        monkeypatch.setattr("leporello.models.naming.SERVERS", table)
        listed = {m.name: (m.reader, m.window) for m in known_models()}
    assert listed["leporello-en"] == ("Embedded", None)
    assert listed["smollm2-135m-instruct"] == ("CausalLM", 8192)
    assert listed["me/t5"] == ("Seq2Seq", 512)
    assert listed["ollama:llama3.2:latest"] == ("Endpoint", 6000)
    assert listed["vllm:"] == ("", None)
