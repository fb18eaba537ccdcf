"""Model servers on this machine, and what they say of their models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from leporello.core.environment.deadlines import within
from leporello.core.errors import UserError

_TIMEOUT = 5.0  # seconds
_GLANCE = 0.7  # seconds, of looking who answers
_OLLAMA_WINDOW = 4096  # tokens, where nobody says otherwise; what is longer it cuts in silence
_WINDOWS = (
    "max_model_len", "loaded_context_length", "context_length", "context_window",
    "max_context_length", "max_input_tokens",
)  # fmt: skip
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server of models as it is on most machines.

    Attributes:
        title: Name of the program.
        port: Number of the port that it listens on if nobody says otherwise.
        start: Command that starts it.
    """

    title: str
    port: int
    start: str

    @property
    def base_url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/v1"


SERVERS: Mapping[str, LocalServer] = {
    "ollama": LocalServer("Ollama", 11434, "ollama serve"),
    "llamacpp": LocalServer("llama.cpp", 8080, "llama-server -m FILE.gguf"),
    "vllm": LocalServer("vLLM", 8000, "vllm serve NAME"),
    "lmstudio": LocalServer("LM Studio", 1234, "lms server start"),
}


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model behind a server.

    Attributes:
        name: Name by which it is asked for.
        window: Number of tokens that it reads and writes at most; None if it does not say.
        size: Size of its weights in bytes; None if it does not say.
    """

    name: str
    window: int | None = None
    size: int | None = None


def served(base_url: str, kind: str = "", timeout: float = _TIMEOUT) -> list[ServedModel]:
    """Returns the models that a server says it has.

    Args:
        base_url: Address of the server.
        kind: Key of `SERVERS`; empty if that is not known.
        timeout: Seconds that each answer may take.

    Raises:
        UserError: Nothing answers there, or not as such servers do.
    """
    told = _ask(base_url, "/models", timeout, kind)
    entries = told.get("data") if isinstance(told, Mapping) else None
    if not isinstance(entries, list):
        raise UserError(f"{base_url} is no model server: its /models lists none; check the address")
    found = [entry for entry in entries if isinstance(entry, Mapping) and entry.get("id")]
    return [ServedModel(str(e["id"]), _first(e, _WINDOWS), _size(e)) for e in found]


def window_of(base_url: str, kind: str, model: str, timeout: float = _TIMEOUT) -> int | None:
    """Returns the window of a model where `served` does not tell; None if nothing does."""
    root = base_url.removesuffix("/v1")
    with suppress(UserError):
        if kind == "ollama":
            told = _ask(root, "/api/show", timeout, body={"model": model})
            given = re.search(r"^num_ctx\s+(\d+)", str(told.get("parameters", "")), re.MULTILINE)
            return int(given[1]) if given else _OLLAMA_WINDOW
        if kind == "lmstudio":
            rows = _ask(root, "/api/v0/models", timeout).get("data", [])
            return next((_first(row, _WINDOWS) for row in rows if row.get("id") == model), None)
        if kind in ("llamacpp", ""):
            told = _ask(root, "/props", timeout)
            return _first(told.get("default_generation_settings") or {}, ("n_ctx",))
    return None


def answering() -> dict[str, list[ServedModel] | None]:
    """Returns the models of each of `SERVERS`, asked at once; None of those that are not there."""

    def models(kind: str) -> list[ServedModel] | None:
        base_url = SERVERS[kind].base_url
        try:
            found = served(base_url, kind, _GLANCE)
        except UserError:
            return None
        return [
            ServedModel(m.name, m.window or window_of(base_url, kind, m.name, _GLANCE), m.size)
            for m in found
        ]

    with ThreadPoolExecutor(len(SERVERS)) as pool:
        return dict(zip(SERVERS, pool.map(models, SERVERS), strict=True))


def _ask(
    base_url: str, path: str, timeout: float, kind: str = "", body: Mapping[str, Any] | None = None
) -> Any:  # noqa: ANN401 -- any JSON
    """Returns the JSON at an address; follows no redirect, asks no proxy for what is here."""
    import httpx2

    try:
        loopback = urlsplit(base_url).hostname in _LOOPBACK
        with httpx2.Client(timeout=timeout, trust_env=not loopback) as client:
            url, method = base_url.rstrip("/") + path, "POST" if body else "GET"
            answer = within(timeout, lambda: client.request(method, url, json=body))
        if not answer.is_success:
            raise UserError(f"{base_url} answers {answer.status_code} when asked for its models")
        return answer.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
        server = SERVERS.get(kind)
        start = f"; start {server.title} with `{server.start}`" if server else ""
        why = str(error).partition("\n")[0] or type(error).__name__
        raise UserError(f"no model server answers at {base_url} ({why}){start}") from None


def _first(entry: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    values = (entry.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _size(entry: Mapping[str, Any]) -> int | None:
    meta = entry.get("meta")  # llama.cpp's
    return _first(meta, ("size",)) if isinstance(meta, Mapping) else None
