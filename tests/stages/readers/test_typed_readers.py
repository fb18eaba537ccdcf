"""Tests of readers with a schema: with support of the server, and by constrained decoding."""

import json
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import Request, endpoint, reply, running
from tiny_models import save

from leporello.core.records import Read
from leporello.readers import CausalLM, Seq2Seq
from leporello.text.typed.parse import parse
from leporello.text.typed.schema import schema_of


@pytest.mark.parametrize("mode", ["chat", "messages", "completions"])
def test_a_request_contains_the_schema(mode: str) -> None:
    def script(request: Request) -> None:
        message = {"content": [{"type": "text", "text": '{"answer": 7}'}], "usage": {}}
        request.send(json.dumps(message).encode()) if mode == "messages" else reply(
            request, '{"answer": 7}'
        )

    with running(script) as server:
        reader = endpoint(server, mode=mode)
        [output] = reader.read([Read(("Seven rowed.",), "How many?", schema=schema_of("integer"))])
        reader.read([Read(("Seven rowed.",), "How many?")])
    typed_body, plain_body = (request.body for request in server.requests)
    form: Any = typed_body.get("response_format", {}).get("json_schema") or typed_body.get(
        "output_config", {}
    ).get("format")
    assert bool(form) == (mode != "completions")
    if form:
        assert form["schema"]["required"] == ["answer"]
    assert not {"response_format", "output_config"} & plain_body.keys()
    assert parse(output.text, schema_of("integer")) == 7


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("name", ["gpt2", "chat", "t5", "bart"])
def test_random_models_generate_valid_values(tmp_path: Path, name: str, beams: int) -> None:
    save(name, tmp_path)
    kind: Any = CausalLM if name in ("gpt2", "chat") else Seq2Seq
    reader = kind(str(tmp_path), max_new_tokens=60, num_beams=beams, max_input_tokens=100)
    person = schema_of({"fields": {"age": {"type": "integer", "minimum": 0, "maximum": 99}}})
    schemas = [
        schema_of("date"),
        person,
        schema_of({"type": "list", "items": "yes_no", "maxItems": 3}),
    ]
    inputs = [Read(("Ann rowed.",), "Who?", schema=schema) for schema in schemas]
    for output, schema in zip(reader.read(inputs), schemas, strict=True):
        assert output.text == "null" or parse(output.text, schema) is not None
