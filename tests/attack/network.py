"""A reader's server misbehaves, while a key is in the environment.

The run ends with a true status before its deadline; no other host hears of the key, and it is in
nothing that the run leaves or tells, nor in the line of any process.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

from tests.attack.command import Started, wrong

NAME = "network"
_KEY = "sk-marked-7f31c0ffee"
_EXAMPLES = 6
_DEADLINE = 90.0  # seconds: 6 examples, 2 attempts of 2 s each, and what a loaded machine takes
_SAID = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Ann"}}]}


def _send(handler: BaseHTTPRequestHandler, content: bytes, status: int = 200, **named: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), **named}
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def _trickle(handler: BaseHTTPRequestHandler) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nX-Filler: " + b"x" * 5000:
        handler.wfile.write(bytes([byte]))
        time.sleep(0.1)


def _told(text: str) -> bytes:
    said = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": text}}]}
    return json.dumps(said).encode()


_USUAL = json.dumps(_SAID).encode()
Way = Callable[[BaseHTTPRequestHandler], None]
WAYS: Mapping[str, Way] = {
    "answers with the key": lambda h: _send(h, _told(h.headers["Authorization"])),
    "redirects to another host": lambda h: _send(h, b"", 307, Location=h.elsewhere),  # type: ignore[attr-defined]
    "redirects to itself": lambda h: _send(h, b"", 302, Location=h.path),
    "hangs": lambda _: time.sleep(30),
    "trickles": _trickle,
    "complains of the key": lambda h: _send(h, h.headers["Authorization"].encode(), 401),
    "complains of the key as JSON": lambda h: _send(
        h, json.dumps({"error": {"message": h.headers["Authorization"]}}).encode(), 400
    ),
    "closes": lambda h: h.connection.close(),
    "breaks off": lambda h: _send(h, _USUAL[:20], Content_Length="500"),
    "says nothing": lambda h: _send(h, b""),
    "no JSON": lambda h: _send(h, b"<html>busy</html>"),
    "no HTTP": lambda h: (h.wfile.write(b"\0" * 500), None)[1],
    "nested JSON": lambda h: _send(h, b"[" * 100_000),
    "no choices": lambda h: _send(h, b'{"choices": []}'),
    "null": lambda h: _send(h, _USUAL.replace(b'"Ann"', b"null")),
    "a list": lambda h: _send(h, b"[1, 2]"),
    "a number as text": lambda h: _send(h, _USUAL.replace(b'"Ann"', b"7")),
    "a lone surrogate": lambda h: _send(h, _USUAL.replace(b"Ann", b"\\ud83d")),
    "no UTF-8": lambda h: _send(h, _USUAL.replace(b"Ann", b"\xff\xfe")),
    "control characters": lambda h: _send(h, _told("\0\x1b[2J\r\n")),
    "a long answer": lambda h: _send(h, _told("Ann " * 500_000)),
    "usage below zero": lambda h: _send(
        h, json.dumps({**_SAID, "usage": {"prompt_tokens": -5, "completion_tokens": 1e99}}).encode()
    ),
    "wrong encoding": lambda h: _send(h, _USUAL, Content_Encoding="gzip"),
    "status 204": lambda h: _send(h, b"", 204),
    "status 418": lambda h: _send(h, b"tea", 418),
    "status 503": lambda h: _send(h, b"", 503),
    "status 999": lambda h: _send(h, b"", 999),
    "wait for ever": lambda h: _send(h, b"", 429, Retry_After="999999999"),
    "wait until never": lambda h: _send(h, b"", 503, Retry_After="soon"),
    "a long header": lambda h: _send(h, _USUAL, X_Filler="x" * 200_000),
}


@dataclass(frozen=True)
class Faulty:
    """A server that misbehaves at some requests.

    Attributes:
        way: How.
        every: At which: 1 is all of them.
        options: Of the command.
    """

    way: str
    every: int = 1
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """In a line."""
        return f"{self.way}, every {self.every}. request {' '.join(self.options)}".strip()

    @property
    def command(self) -> str:
        """Without the server, which is gone: what was told is beside it."""
        return f"MARKED={_KEY} leporello {' '.join(self._line())}"

    def run(self, folder: Path) -> str | None:
        """Runs it against such a server, and looks for the key."""
        heard: list[str] = []
        with _server(self, heard) as url:
            _write(folder, url)
            started = Started(folder, *self._line(), MARKED=_KEY)
            lines: set[bytes] = set()
            end = time.monotonic() + _DEADLINE
            while started.lasts(0.2) and time.monotonic() < end:
                lines |= set(_lines())
            done = started.end(0)
        if told := wrong(done, 0, 1, 2):
            return told
        if heard:
            return f"another host heard of the key: {heard[0]}"
        if _KEY in done.stdout + done.stderr:
            return "the key is told"
        if any(_KEY.encode() in line for line in lines):
            return "the key stands in the line of a process"
        files = [path for path in folder.rglob("*") if path.is_file()]
        holding = [path for path in files if _KEY.encode() in path.read_bytes()]
        return f"the key stands in {holding[0]}" if holding else _judged(folder, done.status)

    def _line(self) -> list[str]:
        return ["run", "mine", "--config", "mine.yaml", "--out", "out", *self.options]

    def smaller(self) -> Iterator[Faulty]:
        """Yields it at all requests, without options."""
        for usual in ({"every": 1}, {"options": ()}):
            if (smaller := replace(self, **usual)) != self:
                yield smaller


def _judged(folder: Path, status: int | None) -> str | None:
    """Returns what is wrong with the results: each example is told once, all are UTF-8."""
    done: list[object] = []
    failed = 0
    for name in ("predictions", "failures"):
        for path in (folder / "out").glob(f"mine*/rows/{name}.jsonl"):
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            done += [row["id"] for row in rows]
            failed += len(rows) * (name == "failures")
    if status == 0 and (failed or len(set(done)) != _EXAMPLES):
        return f"status 0, with {failed} failures and {len(set(done))} examples"
    return "an example is told twice" if len(set(done)) != len(done) else None


def _lines() -> Iterator[bytes]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_bytes()


def _write(folder: Path, url: str) -> None:
    rows = [
        {"id": f"x{n}", "document": f"Ann lit lamp {n}.", "question": f"Who lit lamp {n}?"}
        for n in range(_EXAMPLES)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader = {
        "class": "Endpoint", "base_url": url, "model": "m", "api_key": "$MARKED",
        "timeout": 2, "retries": 1, "patience": 2,
    }  # fmt: skip
    config = {
        "pipelines": {"mine": {"reader": reader, "tasks": ["rows"]}},
        "tasks": {"rows": {"class": "JsonLines", "path": "rows.jsonl"}},
    }
    (folder / "mine.yaml").write_text(json.dumps(config))


@contextmanager
def _server(case: Faulty, heard: list[str]) -> Iterator[str]:
    """Runs it, and another one that is to hear nothing."""
    asked = iter(range(1_000_000))

    class Handler(BaseHTTPRequestHandler):
        elsewhere = ""

        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with suppress(OSError, ValueError):  # the client went away
                if next(asked) % case.every == 0:
                    WAYS[case.way](self)
                else:
                    _send(self, _USUAL)

        def log_message(self, *_: object) -> None:
            pass

    class Other(Handler):
        def do_POST(self) -> None:
            heard.append(f"{self.path} {self.headers}")
            _send(self, _USUAL)

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server,
        ThreadingHTTPServer(("127.0.0.1", 0), Other) as other,
    ):
        server.block_on_close = other.block_on_close = False
        Handler.elsewhere = f"http://localhost:{other.server_port}/v1/chat/completions"
        for one in (server, other):
            threading.Thread(target=one.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        for one in (server, other):
            one.shutdown()


def case(random: Random, number: int) -> Faulty:
    """Each way once in `len(WAYS)` cases; at every request at first."""
    way = [*WAYS][number % len(WAYS)]
    every = 1 if number < len(WAYS) else random.choice((1, 2, 3))
    return Faulty(way, every, random.choice(((), ("--workers", "2"), ("--workers", "0"))))
