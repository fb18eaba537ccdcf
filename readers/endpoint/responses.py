"""Outcomes of requests: an answer, or why there is none; ask again, fail the input, or stop."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from leporello.readers.endpoint.protocols import ServerProtocol, count_of
from leporello.readers.prompting.template import encodable, split_reasoning

Stops: TypeAlias = Literal["", "always", "unless answered"]

_LONGEST = 400  # characters of what a server says that are repeated in a message

# Of status codes that concern every input: what the user can do.
_HINTS = {
    401: "check api_key: it names the environment variable that holds the key, as $OPENAI_API_KEY",
    402: "the account has no credit left",
    403: "the key may not use this model",
    404: "check model, and base_url: most servers want /v1 at its end",
}
SUCCESS, _MOVED = 300, 400  # the first status that is not
_FORBIDDEN, _TIMEOUT, _TOO_LARGE, _RATE, _SERVER = 403, 408, 413, 429, 500
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

    def __add__(self, other: Usage) -> Usage:
        """Returns the sum of two; unknown reasoning counts as none."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.reasoning_tokens or 0) + (other.reasoning_tokens or 0),
            self.cached_tokens + other.cached_tokens,
        )


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
        status: HTTP's status; that of a time-out is 408, and 0 is none.
        again: Whether asking again may help.
        stops: Whether it concerns every input, so that the run stops rather than fails them all;
            `unless answered` does if the server has not answered anything yet.
        wait: Seconds that the server asks to wait.
        usage: Tokens that it took all the same.
    """

    message: str
    status: int = 0
    again: bool = False
    stops: Stops = ""
    wait: float | None = None
    usage: Usage | None = None

    @property
    def overloaded(self) -> bool:
        """Whether the server has too much to do."""
        return self.status in _OVERLOADED

    @property
    def refused(self) -> bool:
        """Whether the server did nothing for that reason (429)."""
        return self.status == _RATE


Outcome: TypeAlias = EndpointReply | ResponseFault


def outcome_of(content: bytes, protocol: ServerProtocol) -> Outcome:
    """Returns the answer in a response, or what is wrong with it."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        page = "; a page and no answer: check base_url" if content.lstrip()[:1] == b"<" else ""
        return ResponseFault(
            f"the server's answer is not JSON: {_excerpt(content)}{page}", again=True
        )
    data = protocol.as_chat(data) if isinstance(data, Mapping) else {}
    usage, choices = _usage(data.get("usage")), data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return ResponseFault(
            f"the server's answer has no choices: {_excerpt(content)}", again=True, usage=usage
        )
    return _outcome_of_choice(choices[0], usage)


def _outcome_of_choice(choice: Mapping[str, Any], usage: Usage | None) -> Outcome:
    told, reason = choice.get("message"), choice.get("finish_reason")
    message = told if isinstance(told, Mapping) else {}
    text, refusal = message.get("content"), message.get("refusal")
    reasoning, answer = split_reasoning(text if isinstance(text, str) else "")
    if reason == "content_filter":
        fault = "the server's content filter withheld the answer (finish_reason 'content_filter')"
    elif isinstance(refusal, str) and refusal:
        fault = f"the model refused: {_excerpt(refusal)}"
    elif not isinstance(text, str) or (reason == "length" and not answer.strip()):
        spent = f" after {usage.output_tokens} tokens" if usage else ""
        hint = "; if the model reasons first, raise max_new_tokens" if reason == "length" else ""
        fault = f"the server's answer has no text (finish_reason {reason!r}{spent}){hint}"
    else:
        given = (message.get(name) for name in ("reasoning_content", "reasoning"))
        reasoning = next((text for text in given if isinstance(text, str) and text), reasoning)
        return EndpointReply(encodable(answer).strip(), usage, encodable(reasoning).strip())
    return ResponseFault(fault, usage=usage)


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    read, written = map(count_of, (usage.get("prompt_tokens"), usage.get("completion_tokens", 0)))
    if read is None or written is None:
        return None
    details = [usage.get(f"{part}_tokens_details") for part in ("prompt", "completion")]
    asked, told = (each if isinstance(each, Mapping) else {} for each in details)
    kept = count_of(asked.get("cached_tokens")) or 0
    return Usage(read, written, count_of(told.get("reasoning_tokens")), min(read, kept))


def fault_of_error(error: Exception, base_url: str, timeout: float) -> ResponseFault:
    """Returns the fault of an error; one that is not of the connection is raised again.

    Args:
        error: Error that a request raised.
        base_url: Address of the server, for messages.
        timeout: Seconds that the request might take.
    """
    import aiohttp

    if isinstance(error, TimeoutError):
        message = f"the server gave no answer within {timeout:g} s"
        return ResponseFault(message, _TIMEOUT, again=True)
    if not isinstance(error, aiohttp.ClientError):
        raise error
    message = _excerpt(f"{type(error).__name__}: {error}")
    if isinstance(error, aiohttp.ClientConnectorError):
        hint = "check base_url, and that the server runs"
        return ResponseFault(
            f"no connection to {base_url} ({message}); {hint}", again=True, stops="always"
        )
    return ResponseFault(f"the connection broke ({message})", again=True)


def fault_of_status(status: int, headers: Mapping[str, str], content: bytes) -> ResponseFault:
    """Returns the fault of a response without success; names of headers have no case."""
    error = _error(content)
    message = f"the server answered {status}: {_error_message(error, content)}"
    code = error.get("code") if isinstance(error, Mapping) else None
    if status < _MOVED:
        to = _excerpt(headers.get("location", ""))
        hint = "no redirect is followed, since a key is for one server: name the other as base_url"
        return ResponseFault(f"the server redirects to {to}; {hint}", status, stops="always")
    if status == _RATE and code == "insufficient_quota":
        return ResponseFault(f"{message}; {_HINTS[402]}", status, stops="always")
    if status in (_TIMEOUT, _RATE) or status >= _SERVER:
        return ResponseFault(message, status, again=True, wait=_wait(headers))
    if code in _PARAMETER_CODES:
        hint = "max_tokens_field, temperature (null: none), sampling_seed and stop say what is sent"
        return ResponseFault(f"{message}; {hint}", status, stops="always")
    if status in _HINTS:
        # Some gateways forbid a single input that they will not pass on.
        stops: Stops = "unless answered" if status == _FORBIDDEN else "always"
        return ResponseFault(f"{message}; {_HINTS[status]}", status, stops=stops)
    told = f"{message}; {_SHORTER}" if _is_too_long(status, error, message) else message
    return ResponseFault(told, status)


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
