"""Queries model servers on this machine for their models and input windows."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from leporello.core.environment.platform import within
from leporello.core.errors import UserError

if TYPE_CHECKING:
    import httpx2

_TIMEOUT = 5.0  # seconds
# Four servers in parallel on this machine: any that runs answers within milliseconds.
_GLANCE = 0.7  # seconds, to check whether a server answers at all
_LARGEST = 8 * 2**20  # bytes of an answer; a server may send without end
_OLLAMA_WINDOW = 4096  # Ollama's default in tokens; it silently truncates longer prompts
_WINDOWS = (
    "max_model_len", "loaded_context_length", "context_length", "context_window",
    "max_context_length", "max_input_tokens",
)  # fmt: skip
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A model server with its default port, and the command that starts it."""

    title: str
    port: int
    start: str

    @property
    def base_url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.port}/v1"


SERVERS: Mapping[str, LocalServer] = {
    "ollama": LocalServer("Ollama", 11434, "ollama serve"),
    "llamacpp": LocalServer("llama.cpp", 8080, "llama-server -m FILE.gguf"),
    "vllm": LocalServer("vLLM", 8000, "vllm serve NAME"),
    "lmstudio": LocalServer("LM Studio", 1234, "lms server start"),
}


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model behind a server."""

    name: str  # name of the model in requests
    window: int | None = None  # maximum number of tokens read and written; None if unknown
    size: int | None = None  # size of its weights in bytes; None if unknown


def list_models(base_url: str, kind: str = "", timeout: float = _TIMEOUT) -> list[ServedModel]:
    """Returns the models that a server lists; `kind` is its key in `SERVERS`, if known."""
    reply = _request_json(base_url, "/models", timeout, kind)
    entries = reply.get("data") if isinstance(reply, Mapping) else None
    if not isinstance(entries, list):
        raise UserError(
            f"{base_url} is not a model server: its /models lists no models; check the address"
        )
    entries = [entry for entry in entries if isinstance(entry, Mapping) and entry.get("id")]
    return [ServedModel(str(e["id"]), _first_positive(e, _WINDOWS), _size(e)) for e in entries]


def window_of(base_url: str, kind: str, model: str, timeout: float = _TIMEOUT) -> int | None:
    """Returns the input window of a model, for servers that do not list it; None if unknown."""
    root = base_url.removesuffix("/v1")
    with suppress(UserError):
        if kind == "ollama":
            reply = _request_json(root, "/api/show", timeout, body={"model": model})
            # Only a set value is listed; otherwise Ollama uses its default, not the model's window.
            match = re.search(r"^num_ctx\s+(\d+)", str(reply.get("parameters", "")), re.MULTILINE)
            return int(match[1]) if match else _OLLAMA_WINDOW
        if kind == "lmstudio":
            rows = _request_json(root, "/api/v0/models", timeout).get("data", [])
            return next(
                (_first_positive(row, _WINDOWS) for row in rows if row.get("id") == model), None
            )
        if kind in ("llamacpp", ""):
            reply = _request_json(root, "/props", timeout)
            return _first_positive(reply.get("default_generation_settings") or {}, ("n_ctx",))
    return None


def running_servers() -> dict[str, list[ServedModel] | None]:
    """Returns the models of all `SERVERS`, queried in parallel; None if one does not answer."""

    def models(kind: str) -> list[ServedModel] | None:
        base_url = SERVERS[kind].base_url
        try:
            # Before the HTTP library is imported, which takes longer than an answer of `ask`.
            socket.create_connection(("127.0.0.1", SERVERS[kind].port), _GLANCE).close()
            entries = list_models(base_url, kind, _GLANCE)
        except (UserError, OSError):
            return None
        return [
            ServedModel(m.name, m.window or window_of(base_url, kind, m.name, _GLANCE), m.size)
            for m in entries
        ]

    with ThreadPoolExecutor(len(SERVERS)) as pool:
        return dict(zip(SERVERS, pool.map(models, SERVERS), strict=True))


def _request_json(
    base_url: str, path: str, timeout: float, kind: str = "", body: Mapping[str, Any] | None = None
) -> Any:  # noqa: ANN401 -- any JSON
    """Returns the JSON at an address; follows no redirects, and uses no proxy for this machine."""
    import httpx2

    try:
        loopback = urlsplit(base_url).hostname in _LOOPBACK
        # A company's proxy would be asked for 127.0.0.1, which is another machine there.
        with httpx2.Client(timeout=timeout, trust_env=not loopback) as client:
            url, method = base_url.rstrip("/") + path, "POST" if body else "GET"
            # The client's own time-out applies to each byte, so a slow server could block us.
            return within(timeout, lambda: _reply(client.stream(method, url, json=body)))
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
        server = SERVERS.get(kind)
        start = f"; start {server.title} with `{server.start}`" if server else ""
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(f"no model server answers at {base_url} ({reason}){start}") from None


def _reply(request: AbstractContextManager[httpx2.Response]) -> Any:  # noqa: ANN401 -- any JSON
    """Returns the JSON of a response; raises ValueError for errors and for too large answers."""
    with request as response:
        content = bytearray()
        for block in response.iter_bytes():
            content += block
            if len(content) > _LARGEST:
                raise ValueError(f"its answer exceeds {_LARGEST:,} bytes")
        if not response.is_success:
            raise ValueError(f"status {response.status_code}")
        return json.loads(content)


def _first_positive(entry: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    values = (entry.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _size(entry: Mapping[str, Any]) -> int | None:
    meta = entry.get("meta")  # only llama.cpp sets it
    return _first_positive(meta, ("size",)) if isinstance(meta, Mapping) else None
