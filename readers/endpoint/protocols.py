"""Protocols of servers: paths, headers, and formats of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from leporello.core.environment.input_limits import count_of
from leporello.text.typed.parse import kind_of

Mode: TypeAlias = Literal["chat", "completions", "messages"]
Turns: TypeAlias = Sequence[Mapping[str, str]]

_NAME = "answer"  # field of the object that wraps a schema of another type
# OpenAI's names for the stop reasons of Anthropic.
_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_INPUT_TOKENS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


@dataclass(frozen=True, slots=True)
class ServerProtocol:
    """The differences between one protocol and the others."""

    path: str  # path of requests below the server's address
    headers: Callable[[str], dict[str, str]]  # returns the headers with a key
    content: Callable[[Turns, str], dict[str, Any]]  # returns the fields for turns and a prompt
    stop: str  # field of the strings that end an answer
    # Returns the fields that constrain the answer to a schema.
    form: Callable[[str], Mapping[str, Any]]
    # Converts an answer to the format of OpenAI's chat.
    as_chat: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _anthropic_headers(key: str) -> dict[str, str]:
    return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}


def _chat(turns: Turns, prompt: str) -> dict[str, Any]:
    return {"messages": [*turns, {"role": "user", "content": prompt}]}


def _messages(turns: Turns, prompt: str) -> dict[str, Any]:
    """Returns the fields of a prompt for Anthropic, which has no message of the system."""
    system = next((turn["content"] for turn in turns if turn["role"] == "system"), None)
    return {"system": system, **_chat([t for t in turns if t["role"] != "system"], prompt)}


def _blocks_as_chat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    # In OpenAI's format, so that the same code judges the answers of all servers. Anthropic's SDK
    # would retry by itself (decision 44).
    content, usage, reason = (data.get(name) for name in ("content", "usage", "stop_reason"))
    choice = {"message": {"content": content}, "finish_reason": _REASONS.get(str(reason), reason)}
    used = usage if isinstance(usage, Mapping) else {}
    # Anthropic leaves cached tokens out of `input_tokens`; OpenAI includes them.
    read, *cached = (count_of(used.get(name)) for name in _INPUT_TOKENS)
    total = None if read is None else read + sum(filter(None, cached))
    counts = {"prompt_tokens": total, "completion_tokens": used.get("output_tokens", 0)}
    return {"choices": [choice] if isinstance(content, list) else None, "usage": counts}


def schema_sent(schema: str) -> str:
    """Returns the schema for a server, with an object at the top; empty if any text is allowed."""
    parsed = json.loads(schema or "{}")
    if not schema or kind_of(parsed) == "text":
        return ""
    if kind_of(parsed) == "object" and "anyOf" not in parsed:
        return schema
    shared = {"$defs": parsed.pop("$defs")} if "$defs" in parsed else {}
    wrapped = {
        **shared,
        "type": "object",
        "properties": {_NAME: {"anyOf": [parsed, {"type": "null"}]}},
        "required": [_NAME],
        "additionalProperties": False,
    }
    return json.dumps(wrapped, ensure_ascii=False)


def _response_format(schema: str) -> Mapping[str, Any]:
    """Returns the fields of OpenAI's chat for a schema; `strict` if its strict mode accepts it."""
    parsed = json.loads(schema)
    json_schema = {"name": _NAME, "schema": parsed, "strict": _is_strict(parsed)}
    return {"response_format": {"type": "json_schema", "json_schema": json_schema}}


def _output_config(schema: str) -> Mapping[str, Any]:
    """Returns the fields of Anthropic's messages for a schema."""
    return {"output_config": {"format": {"type": "json_schema", "schema": json.loads(schema)}}}


def unwrapped(text: str, schema: str) -> str:
    """Returns an answer without the object that `schema_sent` wrapped around it."""
    if not schema or schema_sent(schema) in ("", schema):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a server without schemas, or a truncated answer
        return text
    if not isinstance(value, dict) or [*value] != [_NAME]:
        return text
    inner = value[_NAME]
    return inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)


def _is_strict(schema: Any) -> bool:  # noqa: ANN401 -- any JSON
    """Returns whether all objects of a schema require all their fields and allow no others."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if "properties" in schema and isinstance(schema["properties"], dict):
        is_complete = {*schema.get("required", ())} == {*schema["properties"]}
        if not is_complete or schema.get("additionalProperties") is not False:
            return False
    return all(map(_is_strict, schema.values()))


_OPENAI = ServerProtocol(
    path="/chat/completions",
    headers=_bearer,
    content=_chat,
    stop="stop",
    form=_response_format,
    as_chat=lambda data: data,
)
PROTOCOLS: Mapping[Mode, ServerProtocol] = {
    "chat": _OPENAI,
    "completions": replace(
        _OPENAI,
        path="/completions",
        content=lambda _, prompt: {"prompt": prompt},
        form=lambda _: {},
    ),
    "messages": ServerProtocol(
        path="/messages",
        headers=_anthropic_headers,
        content=_messages,
        stop="stop_sequences",
        form=_output_config,
        as_chat=_blocks_as_chat,
    ),
}


def check_url(base_url: str) -> None:
    """Raises ValueError for a wrong address of a server, without the address: it may have keys."""
    try:
        url = urlsplit(base_url)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError("base_url is not an address, such as http://127.0.0.1:8000/v1")
    if "@" in url.netloc or url.query or url.fragment:
        raise ValueError(
            "base_url has a name, a password, or text after ? or #, which would be written to the"
            " run's files: remove it, and set api_key instead"
        )
    if url.path.rstrip("/").endswith("/completions"):
        raise ValueError("base_url must not contain /chat/completions or /completions: remove it")
