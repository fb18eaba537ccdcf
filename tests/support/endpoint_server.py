"""OpenAI-compatible server that runs a script of the test, and readers that call it."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from command_line import write_files

from leporello.core.records import Output, Read
from leporello.readers import Endpoint

SECRET = "sk-proj-7f3+a/b=c"  # noqa: S105 -- not a real key

Script: TypeAlias = "Callable[[Request], None]"


@dataclass
class Server:
    """Server, with the requests that it received."""

    base_url: str  # of the API
    script: Script  # answers a request
    requests: "list[Request]" = field(default_factory=list)  # in order of arrival
    prompts: Counter[str] = field(default_factory=Counter)  # number of requests per prompt
    most: int = 0  # largest number of concurrent requests
    under_way: int = 0  # number of requests without an answer
    connections: int = 0  # so far
    # Set at the end of the test; requests that hang wait for it.
    ending: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Request:
    """Request, with methods that answer it."""

    handler: BaseHTTPRequestHandler
    server: Server
    path: str
    headers: dict[str, str]  # with names in lower case
    body: dict[str, Any]  # parsed
    times: int = 1  # number of requests with this prompt so far, including this one

    @property
    def prompt(self) -> str:
        """Text of the prompt, or of the last message."""
        prompt = self.body.get("prompt")
        turns = self.body.get("messages") or [{"content": ""}]
        return prompt if isinstance(prompt, str) else str(turns[-1]["content"])

    def send(
        self, content: bytes, status: int = 200, kind: str = "application/json", **headers: str
    ) -> None:
        """Answers with bytes; underscores in names of headers become hyphens."""
        fields = {"Content_Type": kind, "Content_Length": str(len(content)), **headers}
        self.begin(status, **fields)
        self.handler.wfile.write(content)

    def begin(self, status: int = 200, **headers: str) -> None:
        """Sends the status and headers of an answer."""
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()

    def fail(self, status: int, error: dict[str, Any] | None = None, **headers: str) -> None:
        """Answers with an error in OpenAI's format."""
        fields = {"message": f"status {status}", "type": "error", "code": None, **(error or {})}
        self.send(json.dumps({"error": fields}).encode(), status, **headers)

    def drop(self) -> None:
        """Closes the connection."""
        self.handler.wfile.flush()
        self.handler.close_connection = True
        self.handler.connection.close()

    def send_endlessly(self) -> None:
        """Answers with a body that does not end until the client leaves."""
        self.begin()
        self.handler.close_connection = True
        with suppress(OSError):
            while not self.server.ending.is_set():
                self.handler.wfile.write(b" " * 2**20)

    def hang(self) -> None:
        """Waits until the test is over, without an answer."""
        self.server.ending.wait()
        self.handler.close_connection = True


def answer(request: Request, text: str | None, **changed: Any) -> dict[str, Any]:
    """Returns a valid answer with some fields changed, and without those that are `...`."""
    content = {"text": text} if "prompt" in request.body else {"message": {"content": text}}
    fields = {
        "id": "1",
        "model": request.body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", **content}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        **changed,
    }
    return {name: value for name, value in fields.items() if value is not ...}


class _Listener(ThreadingHTTPServer):
    request_queue_size = 128  # a full queue lets clients wait for a second

    def handle_error(self, *_: object) -> None:
        """Ignores errors of clients that were killed."""


@contextmanager
def running(script: Script) -> Iterator[Server]:
    """Runs a server until the block ends; readers retry after milliseconds, and use no proxy."""
    listener = _Listener(("127.0.0.1", 0), _handler(lambda: server))
    listener.daemon_threads = True
    server = Server(f"http://127.0.0.1:{listener.server_port}/v1", script)
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("leporello.readers.endpoint.requests._FIRST_WAIT", 0.001)
            patch.setattr("leporello.readers.endpoint.client._FIRST_PAUSE", 0.001)
            for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
                patch.delenv(name)
            yield server
    finally:
        server.ending.set()
        listener.shutdown()
        listener.server_close()
        thread.join()


def reply(request: Request, text: str | None = None, **changed: Any) -> None:
    """Answers with a text, or with the prompt in capitals."""
    text = request.prompt.upper() if text is None else text
    request.send(json.dumps(answer(request, text, **changed)).encode())


def endpoint(server: Server, **parameters: Any) -> Endpoint:
    """Returns a reader whose prompts contain only the passages."""
    return Endpoint(server.base_url, "m", **{"prompt": "{context}", "retries": 2, **parameters})


def reads(*passages: str) -> list[Read]:
    """Returns one read per text."""
    return [Read((passage,)) for passage in passages]


def sliding(reader: Endpoint, inputs: Iterable[Read]) -> list[Output | Exception]:
    """Computes reads one by one, in one thread per slot of the reader, as the engine does."""

    def read(request: Read) -> Output | Exception:
        try:
            [output] = reader.read([request])
        except Exception as error:
            return error
        return output

    with ThreadPoolExecutor(reader.slots) as pool:
        return list(pool.map(read, inputs))


def texts(outputs: Sequence[Output | Exception]) -> list[str]:
    """Returns the texts of those outputs that are not errors."""
    return [output.text for output in outputs if isinstance(output, Output)]


def project(folder: Path, server: Server, reader: str = "", examples: int = 10) -> Path:
    """Writes a task with one document per example, and a pipeline that calls the server."""
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
    except ValueError:  # an empty body, or a form with a file
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

        def do_HEAD(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            server = server_of()
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = _parsed(content)
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self, server, self.path, headers, body)
            with server.lock:
                server.prompts[request.prompt] += 1
                request.times = server.prompts[request.prompt]
                server.requests.append(request)
                server.under_way += 1
                server.most = max(server.most, server.under_way)
            try:
                server.script(request)
            except OSError:  # the client closed the connection
                self.close_connection = True
            finally:
                with server.lock:
                    server.under_way -= 1

        def log_message(self, *_: object) -> None:
            pass

    return Handler
