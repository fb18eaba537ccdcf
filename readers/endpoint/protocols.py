"""Protocols of servers: paths, headers, and formats of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias
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


class EndpointPrompt(NamedTuple):
    """A prompt, and the JSON Schema of its answer; empty for any text."""

    text: str
    schema: str


@dataclass(frozen=True, slots=True)
class ServerProtocol:
    """The differences between one protocol and the others."""

    path: str  # path of requests below the server's address
    batches: str  # path of batches
    headers: Callable[[str], dict[str, str]]  # returns the headers with a key
    # Returns the fields for earlier turns, a prompt, and the number of its characters that the
    # server should cache; None disables the cache.
    content: Callable[[Turns, str, int | None], dict[str, Any]]
    stop: str  # field of the strings that end an answer
    # Returns the fields that constrain the answer to a schema.
    form: Callable[[str], Mapping[str, Any]]
    # Converts an answer to the format of OpenAI's chat.
    as_chat: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    uploads: bool = True  # whether a batch's requests are uploaded as a file first


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _anthropic_headers(key: str) -> dict[str, str]:
    return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}


def _blocks(turns: Turns, prompt: str, cached: int | None) -> dict[str, Any]:
    """Returns the fields of a prompt for Anthropic; its cache ends after the turns and the head."""

    def block(text: str, is_cached: bool) -> dict[str, Any]:
        mark = {"cache_control": {"type": "ephemeral"}} if is_cached else {}
        return {"type": "text", "text": text, **mark}

    before = [
        (turn["role"], [block(turn["content"], cached is not None and turn is turns[-1])])
        for turn in turns
    ]
    parts = ((prompt[: cached or 0], True), (prompt[cached or 0 :], False))
    contents = [*before, ("user", [block(*part) for part in parts if part[0]])]
    return {
        "system": next((blocks for role, blocks in contents if role == "system"), None),
        "messages": [{"role": r, "content": blocks} for r, blocks in contents if r != "system"],
    }


def _blocks_as_chat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    # In OpenAI's format, so that the same code judges the answers of all servers. Anthropic's SDK
    # would retry by itself (decision 44).
    content, usage, reason = (data.get(name) for name in ("content", "usage", "stop_reason"))
    message = {"content": content}
    choice = {"message": message, "finish_reason": _REASONS.get(str(reason), reason)}
    used = usage if isinstance(usage, Mapping) else {}
    cached, stored = used.get("cache_read_input_tokens"), used.get("cache_creation_input_tokens")
    read = count_of(used.get("input_tokens"))
    # Anthropic leaves cached tokens out of `input_tokens`; OpenAI includes them.
    total = None if read is None else read + (count_of(cached) or 0) + (count_of(stored) or 0)
    counts = {
        "prompt_tokens": total,
        "completion_tokens": used.get("output_tokens", 0),
        "prompt_tokens_details": {"cached_tokens": cached},
    }
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
    if not schema:
        return {}
    parsed = json.loads(schema)
    json_schema = {"name": _NAME, "schema": parsed, "strict": _is_strict(parsed)}
    return {"response_format": {"type": "json_schema", "json_schema": json_schema}}


def _output_config(schema: str) -> Mapping[str, Any]:
    """Returns the fields of Anthropic's messages for a schema; empty for plain text."""
    if not schema:
        return {}
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


_CHAT = ServerProtocol(
    path="/chat/completions",
    batches="/batches",
    headers=_bearer,
    content=lambda turns, prompt, _: {"messages": [*turns, {"role": "user", "content": prompt}]},
    stop="stop",
    form=_response_format,
    as_chat=lambda data: data,
)
PROTOCOLS: Mapping[Mode, ServerProtocol] = {
    "chat": _CHAT,
    "completions": replace(
        _CHAT,
        path="/completions",
        content=lambda _, prompt, __: {"prompt": prompt},
        form=lambda _: {},
    ),
    "messages": ServerProtocol(
        path="/messages",
        batches="/messages/batches",
        headers=_anthropic_headers,
        content=_blocks,
        stop="stop_sequences",
        form=_output_config,
        as_chat=_blocks_as_chat,
        uploads=False,
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
