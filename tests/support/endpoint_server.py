"""An OpenAI-compatible server on this machine that behaves as a test tells it, and its readers."""

from __future__ import annotations

import gc
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from command_line import write_files

from leporello.core.records import Output, Read
from leporello.readers import Endpoint

SECRET = "sk-proj-7f3+a/b=c"  # noqa: S105 -- of no account

Script: TypeAlias = "Callable[[Asked], None]"


@dataclass
class Server:
    """What a server was asked.

    Attributes:
        base_url: Where it listens.
        script: What it does with a request.
        asked: All requests, in order of arrival.
        most: The most that were under way at once.
        ending: Set when the test is over: what hangs, hangs until then.
    """

    base_url: str
    script: Script
    asked: list[Asked] = field(default_factory=list)
    most: int = 0
    under_way: int = 0
    connections: int = 0
    ending: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def prompts(self) -> Counter[str]:
        """Returns how often each prompt was asked."""
        return Counter(asked.prompt for asked in self.asked)


@dataclass
class Asked:
    """One request, and the means to answer it.

    Attributes:
        handler: Of the connection.
        server: What it belongs to.
        path: As requested.
        headers: Names in lower case.
        body: As parsed.
        times: How often this prompt has been asked, this time included.
    """

    handler: BaseHTTPRequestHandler
    server: Server
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    times: int = 1

    @property
    def prompt(self) -> str:
        """The plain prompt, or the user's message."""
        given = self.body.get("prompt")
        turns = self.body.get("messages") or [{"content": ""}]
        return given if isinstance(given, str) else str(turns[-1]["content"])

    def send(
        self, content: bytes, status: int = 200, kind: str = "application/json", **headers: str
    ) -> None:
        """Answers with these bytes."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Content-Type": kind, "Content-Length": str(len(content)), **named}
        self.handler.send_response(status)
        for name, value in given.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(content)

    def fail(self, status: int, error: dict[str, Any] | None = None, **headers: str) -> None:
        """Answers with an error as OpenAI writes it."""
        told = {"message": f"status {status}", "type": "error", "code": None, **(error or {})}
        self.send(json.dumps({"error": told}).encode(), status, **headers)

    def drop(self) -> None:
        """Closes the connection."""
        self.handler.wfile.flush()
        self.handler.close_connection = True
        self.handler.connection.close()

    def hang(self) -> None:
        """Says nothing until the test is over."""
        self.server.ending.wait()
        self.handler.close_connection = True


def answer(asked: Asked, text: str | None, **changed: Any) -> dict[str, Any]:
    """Returns a proper answer, with some fields changed; those that are `...` are left out."""
    said = {"text": text} if "prompt" in asked.body else {"message": {"content": text}}
    whole = {
        "id": "1",
        "model": asked.body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", **said}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        **changed,
    }
    return {name: value for name, value in whole.items() if value is not ...}


class _Listening(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Prints nothing about clients that were killed."""


@contextmanager
def running(script: Script) -> Iterator[Server]:
    """Runs a server that does this with every request; readers meanwhile wait for little."""
    listening = _Listening(("127.0.0.1", 0), _handler(lambda: server))
    listening.daemon_threads = True
    server = Server(f"http://127.0.0.1:{listening.server_port}/v1", script)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            _be_impatient(patch)
            yield server
    finally:
        server.ending.set()
        listening.shutdown()
        listening.server_close()
        thread.join()


def _be_impatient(patch: pytest.MonkeyPatch) -> None:
    """Makes waits a thousandth of what they are, and lets no proxy stand between."""
    patch.setattr("leporello.readers.endpoint.requests._FIRST_WAIT", 0.001)
    patch.setattr("leporello.readers.endpoint.throttle._FIRST_PAUSE", 0.001)
    patch.setattr("leporello.readers.endpoint.batches._FIRST_WAIT", 0.01)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        patch.delenv(name)


def say(asked: Asked, text: str | None = None, **changed: Any) -> None:
    """Answers with the prompt in capitals, or with this text."""
    said = asked.prompt.upper() if text is None else text
    asked.send(json.dumps(answer(asked, said, **changed)).encode())


def made(server: Server, **parameters: Any) -> Endpoint:
    """Returns a reader whose prompts are the passages alone."""
    return Endpoint(server.base_url, "m", **{"prompt": "{context}", "retries": 2, **parameters})


def reads(*passages: str) -> list[Read]:
    """Returns an input a text."""
    return [Read((passage,)) for passage in passages]


def sliding(reader: Endpoint, inputs: Iterable[Read]) -> list[Output | Exception]:
    """Reads one by one in as many threads as the reader has slots, as the engine does."""

    def read(one: Read) -> Output | Exception:
        try:
            [output] = reader.read([one])
        except Exception as error:
            return error
        return output

    with ThreadPoolExecutor(reader.slots) as pool:
        return list(pool.map(read, inputs))


def texts(outputs: Sequence[Output | Exception]) -> list[str]:
    """Returns what was answered."""
    return [output.text for output in outputs if isinstance(output, Output)]


def threads() -> list[str]:
    """Returns the reader's own threads, those left out that are at their end."""
    gc.collect()  # an exception that is caught may hold a reader
    own = [t for t in threading.enumerate() if t.name.startswith(("endpoint", "asyncio"))]
    for thread in own:
        thread.join(0.5)
    return [thread.name for thread in own if thread.is_alive()]


def project(folder: Path, server: Server, reader: str = "", examples: int = 10) -> Path:
    """Writes a task of examples on documents of their own, and a pipeline that asks the server."""
    rows = [
        {"id": f"x{number:02}", "document": f"text {number}", "question": f"What is {number}?"}
        for number in range(examples)
    ]
    config = f"""
pipelines:
  mine:
    tasks: [rows]
    reader:
      class: Endpoint
      base_url: {server.base_url}
      model: m
      prompt: "{{question}} {{context}}"
      {reader}
tasks:
  rows: {{class: JsonLines, path: rows.jsonl}}
"""
    write_files(folder, {"rows.jsonl": rows, "mine.yaml": config})
    return folder / "mine.yaml"


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(content))
    except ValueError:  # nothing, or a form with a file
        return {"prompt": content.decode()}


def _handler(server_of: Callable[[], Server]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            server_of().connections += 1

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            server = server_of()
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = _parsed(content)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self, server, self.path, headers, body)
            with server.lock:
                asked.times = server.prompts()[asked.prompt] + 1
                server.asked.append(asked)
                server.under_way += 1
                server.most = max(server.most, server.under_way)
            try:
                server.script(asked)
            except OSError:  # the client went away
                self.close_connection = True
            finally:
                with server.lock:
                    server.under_way -= 1

        def log_message(self, *_: object) -> None:
            pass

    return Handler
