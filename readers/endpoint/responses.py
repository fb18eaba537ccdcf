"""Outcomes of requests: an answer, or a fault that is repeated, fails the input, or stops."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from leporello.core.environment.input_limits import SECONDS, count_of
from leporello.readers.endpoint.messages import message_of
from leporello.readers.endpoint.protocols import ServerProtocol
from leporello.readers.prompting.template import encodable

_LONGEST = 400  # characters of a server's text in a message

# Advice for status codes. All but 403 concern all inputs.
_HINTS = {
    401: "check api_key: it must name the environment variable with the key, as $OPENAI_API_KEY",
    402: "the account has no credit left",
    403: "the key may not use this model, or the server filters this input",
    404: "check model, and base_url: most servers need /v1 at its end",
}
SUCCESS, _MOVED = 300, 400  # upper bounds of these status codes
_FORBIDDEN, _TIMEOUT, _RATE, _SERVER = 403, 408, 429, 500
_OVERLOADED = {_TIMEOUT, _RATE, 503, 504, 529}
# Reasons of OpenRouter, DeepSeek and SGLang for an answer without its end.
_UNFINISHED = ("error", "insufficient_system_resource", "abort")
_CUT = ("length", "tool_calls", "function_call")  # reasons for an answer that may lack its text
_SHORTER = (
    "; if prompt and answer exceed the model's input window, lower max_input_tokens or"
    " max_new_tokens; set tokenizer to the model's one to count prompts as the server does"
)
_TOO_LONG = re.compile(
    r"context|too (?:long|large)|maximum (?:model )?length|must be <=|exceeds", re.I
)
# Codes for unsupported parameters, which concern all inputs.
_PARAMETER_CODES = {"unsupported_parameter", "unsupported_value", "unknown_parameter"}


class EndpointError(Exception):
    """The server did not answer an input."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a request and its answer, as the server counts them."""

    input_tokens: int
    output_tokens: int  # including reasoning
    reasoning_tokens: int | None = None  # None if the server does not report it


@dataclass(frozen=True, slots=True)
class EndpointReply:
    """An answer, the reasoning before it, and its usage; None if the server does not report it."""

    text: str
    usage: Usage | None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ResponseFault:
    """A request without an answer."""

    message: str  # message for the user
    status: int = 0  # HTTP status; 408 for a time-out, 0 without a response
    again: bool = False  # whether to repeat the request
    stops: bool = False  # whether it concerns all inputs, so that the run stops
    wait: float | None = None  # seconds that the server asks to wait
    usage: Usage | None = None  # tokens that were charged nevertheless

    @property
    def overloaded(self) -> bool:
        """Whether the server is overloaded."""
        return self.status in _OVERLOADED

    @property
    def refused(self) -> bool:
        """Whether the server refused the request for that reason (429)."""
        return self.status == _RATE


Outcome: TypeAlias = EndpointReply | ResponseFault


def outcome_of(content: bytes, protocol: ServerProtocol) -> Outcome:
    """Returns the answer in a response, or its fault."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        page = "; it is a web page: check base_url" if content.lstrip()[:1] == b"<" else ""
        return ResponseFault(
            f"the server's answer is not JSON: {_excerpt(content)}{page}", again=True
        )
    if isinstance(data, Mapping) and data.get("error") and not data.get("choices"):
        return _fault_in_answer(data["error"], content)
    data = protocol.as_chat(data) if isinstance(data, Mapping) else {}
    usage, choices = _usage(data.get("usage")), data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return ResponseFault(
            f"the server's answer has no choices: {_excerpt(content)}", again=True, usage=usage
        )
    return _outcome_of_choice(choices[0], usage)


def _outcome_of_choice(choice: Mapping[str, Any], usage: Usage | None) -> Outcome:
    text, reasoning, refusal = message_of(choice)
    reason, error = choice.get("finish_reason"), choice.get("error")
    answer = (text or "").strip()
    # A model may answer with nothing, unless something is missing.
    is_unfinished = text is None or reason in _CUT or reasoning
    if error or reason in _UNFINISHED:
        why = f": {_error_message(error, b'')}" if error else ""
        fault = f"the server broke the answer off (finish_reason {reason!r}){why}"
        return ResponseFault(fault, again=True, usage=usage)
    if reason == "content_filter":
        fault = "the server's content filter withheld the answer (finish_reason 'content_filter')"
    elif refusal:
        fault = f"the model refused: {_excerpt(refusal)}"
    elif not answer and is_unfinished:
        spent = f" after {usage.output_tokens} tokens" if usage else ""
        fault = f"the server's answer has no text (finish_reason {reason!r}{spent})"
        if reason == "length" or reasoning:
            fault += "; if the model reasons first, raise max_new_tokens"
    else:
        return EndpointReply(encodable(answer), usage, encodable(reasoning.strip()))
    return ResponseFault(fault, usage=usage)


def _fault_in_answer(error: object, content: bytes) -> ResponseFault:
    """Returns the fault for an error that a successful response contains."""
    code = error.get("code") if isinstance(error, Mapping) else None
    if str(code).isdecimal() and _MOVED <= int(str(code)) < 2 * _MOVED:
        return fault_of_status(int(str(code)), {}, content)
    message = _error_message(error, content)
    return ResponseFault(f"the server answered with an error: {message}", again=True)


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    read, written = map(count_of, (usage.get("prompt_tokens"), usage.get("completion_tokens", 0)))
    if read is None or written is None:
        return None
    details = usage.get("completion_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return Usage(read, written, count_of(reasoning))


def fault_of_error(error: Exception, base_url: str, timeout: float) -> ResponseFault:
    """Returns the fault for a connection error; raises other errors again."""
    import aiohttp

    if isinstance(error, TimeoutError):
        message = f"the server did not answer within {timeout:g} s"
        return ResponseFault(message, _TIMEOUT, again=True)
    if not isinstance(error, aiohttp.ClientError):
        raise error
    message = _excerpt(f"{type(error).__name__}: {error}")
    if isinstance(error, aiohttp.ClientConnectorError):
        hint = "check base_url, and whether the server is running"
        return ResponseFault(
            f"no connection to {base_url} ({message}); {hint}", again=True, stops=True
        )
    return ResponseFault(f"the connection broke ({message})", again=True)


def fault_of_status(status: int, headers: Mapping[str, str], content: bytes) -> ResponseFault:
    """Returns the fault for an unsuccessful response; names of headers ignore case."""
    error = _error(content)
    message = f"the server answered {status}: {_error_message(error, content)}"
    code = error.get("code") if isinstance(error, Mapping) else None
    if status < _MOVED:
        target = _excerpt(headers.get("location", ""))
        hint = "it is not followed, since this could leak the key: set base_url to that address"
        return ResponseFault(f"the server redirects to {target}; {hint}", status, stops=True)
    if status == _RATE and code == "insufficient_quota":
        return ResponseFault(f"{message}; {_HINTS[402]}", status, stops=True)
    if status in (_TIMEOUT, _RATE) or status >= _SERVER:
        return ResponseFault(message, status, again=True, wait=_wait(headers))
    if code in _PARAMETER_CODES:
        hint = "change max_tokens_field, temperature (null to omit it), stop or options"
        return ResponseFault(f"{message}; {hint}", status, stops=True)
    if status in _HINTS:
        stops = status != _FORBIDDEN  # some gateways answer 403 for a single input that they filter
        return ResponseFault(f"{message}; {_HINTS[status]}", status, stops=stops)
    advice = _SHORTER if _TOO_LONG.search(message) else ""
    return ResponseFault(message + advice, status)


def _error(content: bytes) -> object:
    """Returns the error in a response's body, which OpenAI wraps in an object."""
    try:
        body: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body.get("error", body) if isinstance(body, Mapping) else body


def _error_message(error: object, content: bytes) -> str:
    if isinstance(error, Mapping):
        message = next(
            (error[name] for name in ("message", "detail", "error") if error.get(name)), error
        )
        return _excerpt(message if isinstance(message, str) else json.dumps(message, default=str))
    return _excerpt(error if isinstance(error, str) else content)


def _wait(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds of Retry-After; None without the header, or if it is a date."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(0.0, seconds), SECONDS) if math.isfinite(seconds) else None


def _excerpt(content: bytes | str) -> str:
    text = content[: 4 * _LONGEST]
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    line = " ".join(text.split())
    return f"{line[:_LONGEST]}…" if len(line) > _LONGEST else line or "nothing"
