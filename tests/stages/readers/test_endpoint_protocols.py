"""Tests of endpoints with Anthropic's messages, schemas, reasoning, cached prompts and batches."""

import json
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, command, leporello, read_lines, until
from endpoint_server import SECRET, Request, endpoint, project, reads, reply, running, texts

from leporello.core.errors import UserError
from leporello.core.files import cache_directory
from leporello.core.records import Read
from leporello.readers.endpoint.responses import EndpointError
from leporello.text.typed.parse import parse
from leporello.text.typed.schema import schema_of

pytestmark = pytest.mark.usefixtures("own_cache")


def message(text: str, **usage: int) -> dict[str, Any]:
    blocks = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": text}]
    used = {"input_tokens": 10, "output_tokens": 5, **usage}
    return {"content": blocks, "stop_reason": "end_turn", "usage": used}


def test_anthropics_messages_are_sent_and_parsed(tmp_path: Path) -> None:
    examples = tmp_path / "examples.jsonl"
    examples.write_text('{"question": "Who rowed?", "context": "Bo rowed.", "answer": "Bo"}\n')

    def script(request: Request) -> None:
        request.send(json.dumps(message("Ann", cache_read_input_tokens=990)).encode())

    parameters = {"mode": "messages", "api_key": SECRET, "system": "Be brief.", "stop": ("\n",)}
    prices = {"input_price": 1.0, "cached_price": 0.1, "output_price": 10.0}
    prompt = "{context}\n\nQuestion: {question}"
    with running(script) as server:
        reader = endpoint(
            server, **parameters, **prices, prompt=prompt, examples=examples, cache_prompts=True,
            options={"thinking": {"type": "enabled"}}, max_new_tokens=7,
        )  # fmt: skip
        [output] = reader.read([Read(("Ann slept.",), "Who slept?")])
    [request] = server.requests
    assert request.path == "/v1/messages"
    assert (request.headers["x-api-key"], "authorization" in request.headers) == (SECRET, False)
    cached = {"cache_control": {"type": "ephemeral"}}
    assert request.body["system"] == [{"type": "text", "text": "Be brief."}]
    assert [turn["role"] for turn in request.body["messages"]] == ["user", "assistant", "user"]
    assert request.body["messages"][1]["content"] == [{"type": "text", "text": "Bo", **cached}]
    assert request.body["messages"][2]["content"] == [
        {"type": "text", "text": "Ann slept.", **cached},
        {"type": "text", "text": "\n\nQuestion: Who slept?"},
    ]
    assert request.body["max_tokens"] == 7
    assert request.body["stop_sequences"] == ["\n"]
    assert request.body["thinking"] == {"type": "enabled"}
    assert (output.text, output.reasoning) == ("Ann", "Hm.")
    assert (output.input_tokens, output.output_tokens) == (1000, 5)
    assert output.dollars == pytest.approx((10 * 1.0 + 990 * 0.1 + 5 * 10) / 1e6)


@pytest.mark.parametrize("mode", ["chat", "messages", "completions"])
def test_a_request_contains_the_schema(mode: str) -> None:
    """Completions have no field for it; the reader parses their text."""
    schema, text = schema_of("integer"), '{"answer": 7}'

    def script(request: Request) -> None:
        is_message = mode == "messages"
        request.send(json.dumps(message(text)).encode()) if is_message else reply(request, text)

    with running(script) as server:
        reader = endpoint(server, mode=mode)
        [output] = reader.read([Read(("Seven rowed.",), "How many?", schema=schema)])
        reader.read([Read(("Seven rowed.",), "How many?")])
    typed, plain = (request.body for request in server.requests)
    form: Any = {
        "chat": typed.get("response_format", {}).get("json_schema"),
        "messages": typed.get("output_config", {}).get("format"),
    }.get(mode)
    assert (form and form["schema"]["required"]) == (None if mode == "completions" else ["answer"])
    assert not {"response_format", "output_config"} & plain.keys()
    assert parse(output.text, schema) == 7


def test_explain_shows_the_reasoning(tmp_path: Path) -> None:
    with running(lambda request: reply(request, "<think>Hm, so.</think>Ann")) as server:
        path = project(tmp_path, server, examples=1)
        leporello("run", "mine", "--config", path, "--out", tmp_path / "out", *HERE)
    [row] = read_lines(tmp_path / "out" / "mine" / "rows" / "predictions.jsonl")
    assert row["prediction"] == "Ann"
    output = leporello("explain", tmp_path / "out", "x00").stdout
    assert "reasoning  3 tokens  Hm, so." in output


def test_redirects_are_not_followed() -> None:
    def script(request: Request) -> None:
        request.send(b"", 307, Location="http://127.0.0.1:9/v1/chat/completions")

    with (
        running(script) as server,
        pytest.raises(UserError, match=r"redirects to http://127.0.0.1:9/.* set base_url"),
    ):
        endpoint(server).read(reads("moved"))


@dataclass
class Service:
    """Service for batches, with the protocols of OpenAI and Anthropic."""

    ready: bool = True  # whether batches are finished
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)  # requests by id
    files: dict[str, dict[str, Any]] = field(default_factory=dict)  # requests by id
    looked: int = 0  # number of status requests

    def __call__(self, request: Request) -> None:
        place = request.path.removeprefix("/v1")
        request.send(self._answer(place, request).encode())

    def _answer(self, place: str, request: Request) -> str:
        method = request.handler.command
        if place == "/files":
            lines = [line for line in request.prompt.splitlines() if line.startswith("{")]
            rows = {row["custom_id"]: row["body"] for row in map(json.loads, lines)}
            self.files[f"f{len(self.files)}"] = rows
            return json.dumps({"id": f"f{len(self.files) - 1}"})
        if place.endswith("/batches") and method == "POST":
            name = f"b{len(self.batches)}"
            if file := request.body.get("input_file_id"):
                self.batches[name] = self.files[file]
            else:
                rows = request.body["requests"]
                self.batches[name] = {row["custom_id"]: row["params"] for row in rows}
            return json.dumps({"id": name})
        if "/batches?" in place:
            return json.dumps({"data": [self._batch(name) for name in self.batches]})
        if place.endswith(("/results", "/content")):
            name = place.split("/")[-2].removeprefix("o-")
            kind = self._anthropic if place.endswith("/results") else self._openai
            return "\n".join(json.dumps(kind(*row)) for row in self._texts(name))
        self.looked += 1
        return json.dumps(self._batch(place.rpartition("/")[2]))

    def _batch(self, name: str) -> dict[str, Any]:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return {
            "id": name, "status": "completed" if self.ready else "in_progress",
            "processing_status": "ended" if self.ready else "in_progress", "created_at": now,
            "request_counts": {"processing": len(self.batches[name]), "errored": 0},
            "input_file_id": f"f{name[1:]}", "output_file_id": f"o-{name}",
        }  # fmt: skip

    def _texts(self, name: str) -> list[tuple[str, str]]:
        bodies = self.batches[name]
        ends = {key: body["messages"][-1]["content"] for key, body in bodies.items()}
        plain = {k: end if isinstance(end, str) else end[-1]["text"] for k, end in ends.items()}
        return [(key, text) for key, text in reversed(plain.items())]

    def _anthropic(self, key: str, text: str) -> dict[str, Any]:
        good = {"type": "succeeded", "message": message(text.upper())}
        bad = {"type": "errored", "error": {"message": "no"}}
        return {"custom_id": key, "result": bad if "bad" in text else good}

    def _openai(self, key: str, text: str) -> dict[str, Any]:
        choice = {"message": {"content": text.upper()}, "finish_reason": "stop"}
        good = {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}
        status, body = (400, {"error": {"message": "no"}}) if "bad" in text else (200, good)
        return {"custom_id": key, "response": {"status_code": status, "body": body}}


@pytest.mark.parametrize("mode", ["chat", "messages"])
def test_a_batch_is_sent_once_at_half_the_price(mode: str) -> None:
    service = Service()
    options = {"mode": mode, "batch": True, "input_price": 1.0, "output_price": 2.0}
    with running(service) as server:
        reader = endpoint(server, **options)
        assert (reader.slots, reader.schedules_itself) == (0, True)
        outputs = reader.read(reads("a", "b", "a"))
        assert texts(outputs) == ["A", "B", "A"]
        assert outputs[0].dollars == pytest.approx((10 + 5 * 2) / 1e6 / 2)
        assert [len(batch) for batch in service.batches.values()] == [2]
        # A failed input is sent again by the next run, but not with each call of this one.
        for again in (reader, reader, endpoint(server, **options)):
            with pytest.raises(EndpointError, match="no"):
                again.read(reads("c", "bad", "a"))
    assert [len(batch) for batch in service.batches.values()] == [2, 2, 1]


@pytest.mark.parametrize("mode", ["chat", "messages"])
def test_a_batch_is_resumed_after_a_kill(mode: str, tmp_path: Path) -> None:
    service = Service(ready=False)
    with running(service) as server:
        path = project(tmp_path, server, f"mode: {mode}\n      batch: true", examples=4)
        files = ("--config", path, "--out", tmp_path / "out")
        words: list[str | Path] = ["run", "mine", *files, *HERE]
        process = subprocess.Popen(command(*words), stdout=subprocess.DEVNULL)
        until(lambda: service.looked > 0, process)
        process.kill()
        process.wait()
        [record] = (cache_directory() / "batches").glob("*/*.json")
        row = json.loads(record.read_text())
        record.write_text(json.dumps({**row, "id": ""}))  # killed a moment earlier
        service.ready = True
        leporello(*words)
    assert [len(batch) for batch in service.batches.values()] == [4]
    rows = read_lines(tmp_path / "out" / "mine" / "rows" / "predictions.jsonl")
    assert [row["prediction"] for row in rows] == [f"WHAT IS {n}? TEXT {n}" for n in range(4)]
