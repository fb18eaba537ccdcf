"""What comes of a request: an answer, or why there is none; ask again, fail the input, or stop."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from leporello.readers.prompting.reasoning import split_reasoning
from leporello.readers.prompting.template import encodable

Mode: TypeAlias = Literal["chat", "completions", "messages"]
Stops: TypeAlias = Literal["never", "always", "unless answered"]

_LONGEST = 400  # characters of what a server says that are repeated in a message

# Of status codes that concern every input: what the user can do.
_HINTS = {
    401: "check api_key: it names the environment variable that holds the key, as $OPENAI_API_KEY",
    402: "the account has no credit left",
    403: "the key may not use this model",
    404: "check model, and base_url: most servers want /v1 at its end",
}
# Why Anthropic's models stop, as OpenAI has it.
_REASONS = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_OK, _REFUSED, _TIMEOUT, _FORBIDDEN, _TOO_LARGE, _RATE, _SERVER = 300, 400, 408, 403, 413, 429, 500
_OVERLOADED = {_TIMEOUT, _RATE, 503, 504, 529}
_SHORTER = (
    "prompt and answer are more than the model takes: lower max_input_tokens or max_new_tokens;"
    " with the model's tokenizer, prompts are counted as the server counts them"
)
# OpenAI, vLLM, SGLang, llama.cpp, TGI, Mistral, Anthropic and Gemini, in this order.
_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|maximum (model|context) length|tokens. must be <="
    r"|(prompt|input|request)\b.{0,80}\btoo (long|large)|token count.{0,40}\bexceeds",
    re.IGNORECASE,
)
# A parameter that the model does not take; what is wrong with one input has other codes.
_PARAMETER_CODES = {"unsupported_parameter", "unsupported_value", "unknown_parameter"}


class EndpointError(Exception):
    """The server gave no answer to an input."""


@dataclass(frozen=True, slots=True)
class Response:
    """What a server sent; names of headers have no case, and the body may be anything."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that an answer took, as the server counts them.

    Attributes:
        input_tokens: Number of tokens read.
        output_tokens: Number of tokens written, reasoning included.
        reasoning_tokens: Number of tokens of reasoning; None where the server does not tell.
        cached_tokens: Number of tokens read that the server had kept from an earlier request.
    """

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int | None = None
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class EndpointReply:
    """An answer, what the model reasoned before it, and its usage, None where none is told."""

    text: str
    usage: Usage | None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ResponseFault:
    """Why there is no answer.

    Attributes:
        message: Message for the person who reads it.
        again: Whether asking again may help.
        overloaded: Whether the server has too much to do.
        refused: Whether it did nothing for that reason, and said so (429).
        stops: Whether it concerns every input, so that the run stops rather than fails them all;
            `unless answered` does if the server has not answered anything yet.
        wait: Seconds that the server asks to wait.
        usage: Tokens that it took all the same.
    """

    message: str
    again: bool = False
    overloaded: bool = False
    refused: bool = False
    stops: Stops = "never"
    wait: float | None = None
    usage: Usage | None = None


def outcome_of(response: Response, mode: Mode) -> EndpointReply | ResponseFault:
    """Returns the answer in a response, or what is wrong with it.

    Args:
        response: Response of the server.
        mode: Form of the request.
    """
    if response.status >= _OK:
        return fault_of_status(response)
    content = response.content
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        page = "; a page and no answer: check base_url" if content.lstrip()[:1] == b"<" else ""
        return ResponseFault(
            f"the server's answer is not JSON: {_excerpt(content)}{page}", again=True
        )
    chat = mode != "completions"
    data = _as_chat(data) if mode == "messages" and isinstance(data, Mapping) else data
    usage = _usage(data)
    choices = data.get("choices") if isinstance(data, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return ResponseFault(
            f"the server's answer has no choices: {_excerpt(content)}", again=True, usage=usage
        )
    withheld = _withheld(choices[0], chat=chat)
    text = _text(choices[0], chat=chat)
    reasoning, answer = split_reasoning(text or "") if chat else ("", text or "")
    cut_off = choices[0].get("finish_reason") == "length" and not answer.strip()
    if withheld or text is None or cut_off:
        return ResponseFault(withheld or _no_text(choices[0], usage), usage=usage)
    message = choices[0].get("message") if chat else None
    apart = message if isinstance(message, Mapping) else {}
    given = (apart.get(name) for name in ("reasoning_content", "reasoning"))
    reasoning = next((text for text in given if isinstance(text, str) and text), reasoning)
    return EndpointReply(encodable(answer).strip(), usage, encodable(reasoning).strip())


def _as_chat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a response of Anthropic's as OpenAI's chat writes it."""
    content, usage = data.get("content"), data.get("usage")
    blocks = [b for b in content if isinstance(b, Mapping)] if isinstance(content, list) else []
    texts = [b["text"] for b in blocks if isinstance(b.get("text"), str)]
    thoughts = [b["thinking"] for b in blocks if isinstance(b.get("thinking"), str)]
    told = {"content": "".join(texts) if texts else None, "reasoning": "\n".join(thoughts)}
    reason = data.get("stop_reason")
    choice = {"message": told, "finish_reason": _REASONS.get(str(reason), reason)}
    used = usage if isinstance(usage, Mapping) else {}
    kept, made = used.get("cache_read_input_tokens"), used.get("cache_creation_input_tokens")
    read = _count(used.get("input_tokens"))
    counts = {
        "prompt_tokens": None if read is None else read + (_count(kept) or 0) + (_count(made) or 0),
        "completion_tokens": used.get("output_tokens", 0),
        "prompt_tokens_details": {"cached_tokens": kept},
    }
    return {"choices": [choice] if isinstance(content, list) else None, "usage": counts}


def _withheld(choice: Mapping[str, Any], *, chat: bool) -> str:
    """Says that a filter or the model kept the answer back; empty if none did."""
    message = choice.get("message") if chat else None
    refusal = message.get("refusal") if isinstance(message, Mapping) else None
    if choice.get("finish_reason") == "content_filter":
        return "the server's content filter withheld the answer (finish_reason 'content_filter')"
    return f"the model refused: {_excerpt(refusal)}" if isinstance(refusal, str) and refusal else ""


def _text(choice: Mapping[str, Any], *, chat: bool) -> str | None:
    message = choice.get("message") if chat else choice
    if not isinstance(message, Mapping):
        return None
    text = message.get("content" if chat else "text")
    return text if isinstance(text, str) else None


def _no_text(choice: Mapping[str, Any], usage: Usage | None) -> str:
    reason = choice.get("finish_reason")
    spent = f" after {usage.output_tokens} tokens" if usage else ""
    hint = "; if the model reasons first, raise max_new_tokens" if reason == "length" else ""
    return f"the server's answer has no text (finish_reason {reason!r}{spent}){hint}"


def _usage(data: object) -> Usage | None:
    usage = data.get("usage") if isinstance(data, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    read, written = map(_count, (usage.get("prompt_tokens"), usage.get("completion_tokens", 0)))
    if read is None or written is None:
        return None
    kept = _detail(usage, "prompt", "cached_tokens") or 0
    return Usage(read, written, _detail(usage, "completion", "reasoning_tokens"), min(read, kept))


def _detail(usage: Mapping[str, Any], part: str, name: str) -> int | None:
    details = usage.get(f"{part}_tokens_details")
    return _count(details.get(name)) if isinstance(details, Mapping) else None


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def fault_of(error: Exception, base_url: str, timeout: float) -> ResponseFault:
    """Returns what an error comes to; one that is not of the connection is raised again.

    Args:
        error: Error that a request raised.
        base_url: Address of the server, for messages.
        timeout: Seconds that the request might take.
    """
    import aiohttp

    if isinstance(error, TimeoutError):
        message = f"the server gave no answer within {timeout:g} s"
        return ResponseFault(message, again=True, overloaded=True)
    if not isinstance(error, aiohttp.ClientError):
        raise error
    message = _excerpt(f"{type(error).__name__}: {error}")
    if isinstance(error, aiohttp.ClientConnectorError):
        hint = "check base_url, and that the server runs"
        return ResponseFault(
            f"no connection to {base_url} ({message}); {hint}", again=True, stops="always"
        )
    return ResponseFault(f"the connection broke ({message})", again=True)


def fault_of_status(response: Response) -> ResponseFault:
    """Returns what a response without success comes to."""
    status, error = response.status, _error(response.content)
    message = f"the server answered {status}: {_error_message(error, response.content)}"
    code = error.get("code") if isinstance(error, Mapping) else None
    if status < _REFUSED:
        to = _excerpt(response.headers.get("location", ""))
        hint = "no redirect is followed, since a key is for one server: name the other as base_url"
        return ResponseFault(f"the server redirects to {to}; {hint}", stops="always")
    if status == _RATE and code == "insufficient_quota":
        return ResponseFault(f"{message}; {_HINTS[402]}", stops="always")
    if status in (_TIMEOUT, _RATE) or status >= _SERVER:
        wait, overloaded = _wait(response.headers), status in _OVERLOADED
        return ResponseFault(message, True, overloaded, refused=status == _RATE, wait=wait)
    if code in _PARAMETER_CODES:
        hint = "max_tokens_field, temperature (null: none), sampling_seed and stop say what is sent"
        return ResponseFault(f"{message}; {hint}", stops="always")
    if status in _HINTS:
        # Some gateways forbid a single input that they will not pass on.
        stops: Stops = "unless answered" if status == _FORBIDDEN else "always"
        return ResponseFault(f"{message}; {_HINTS[status]}", stops=stops)
    return ResponseFault(
        f"{message}; {_SHORTER}" if _is_too_long(status, error, message) else message
    )


def _error(content: bytes) -> object:
    """Returns what the body of an error says, which OpenAI puts into an object of its own."""
    try:
        body: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body.get("error", body) if isinstance(body, Mapping) else body


def _is_too_long(status: int, error: object, message: str) -> bool:
    """Says whether a server complains of too many tokens; each does in its own words."""
    texts = [message, *(str(error.get(n)) for n in ("code", "type") if isinstance(error, Mapping))]
    return status == _TOO_LARGE or any(map(_TOO_LONG.search, texts))


def _error_message(error: object, content: bytes) -> str:
    """Returns the message of an error; servers put it in several places."""
    if isinstance(error, Mapping):
        message = next(
            (error[name] for name in ("message", "detail", "error") if error.get(name)), error
        )
        return _excerpt(message if isinstance(message, str) else json.dumps(message, default=str))
    return _excerpt(error if isinstance(error, str) else content)


def _wait(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds of Retry-After, which may also be a date; None where there is none."""
    from email.utils import parsedate_to_datetime

    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())


def _excerpt(content: bytes | str) -> str:
    """Returns the beginning of what a server said, on one line."""
    text = content[: 4 * _LONGEST]
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    line = " ".join(text.split())
    return f"{line[:_LONGEST]}…" if len(line) > _LONGEST else line or "nothing"
