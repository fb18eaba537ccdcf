"""Tests of endpoints with Anthropic's messages, schemas and reasoning."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from endpoint_server import SECRET, Request, endpoint, project, reads, reply, running

from leporello.core.errors import UserError
from leporello.core.records import Read
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
    prices = {"input_price": 1.0, "output_price": 10.0}
    prompt = "{context}\n\nQuestion: {question}"
    with running(script) as server:
        reader = endpoint(
            server, **parameters, **prices, prompt=prompt, examples=examples,
            options={"thinking": {"type": "enabled"}}, max_new_tokens=7,
        )  # fmt: skip
        [output] = reader.read([Read(("Ann slept.",), "Who slept?")])
    [request] = server.requests
    assert request.path == "/v1/messages"
    assert (request.headers["x-api-key"], "authorization" in request.headers) == (SECRET, False)
    assert request.body["system"] == "Be brief."
    assert [turn["role"] for turn in request.body["messages"]] == ["user", "assistant", "user"]
    assert request.body["messages"][1]["content"] == "Bo"
    assert request.body["messages"][2]["content"] == "Ann slept.\n\nQuestion: Who slept?"
    assert request.body["max_tokens"] == 7
    assert request.body["stop_sequences"] == ["\n"]
    assert request.body["thinking"] == {"type": "enabled"}
    assert (output.text, output.reasoning) == ("Ann", "Hm.")
    assert (output.input_tokens, output.output_tokens) == (1000, 5)
    assert output.dollars == pytest.approx((1000 * 1.0 + 5 * 10) / 1e6)


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
        reader.read([Read(("Six rowed.",), "How many?")])
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
