"""Attacks of servers: replies that do not end, grow, or break their protocol.

Each command ends with a sentence, soon and in little memory.
"""

import gzip
import resource
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from command_line import write_files
from endpoint_server import Request, running

from tests.attack.command import leporello, wrong

_MEGABYTES = 500
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_BOMB = gzip.compress(b" " * 10**7, 1) * 100
_CONFIG = """
pipelines:
  mine:
    tasks: [rows]
    reader: {class: Endpoint, base_url: ADDRESS, model: m, retries: 1, patience: 2, timeout: 3}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
  remote: {class: JsonLines, path: ADDRESS/rows.jsonl}
"""
_ROW = '{"id": "1", "document": "The lamp hangs.", "question": "What hangs?"}\n'
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run": ("run", "mine", "--config", "mine.yaml", "--workers", "0", "--unsupervised"),
    "ask": ("ask", "doc.txt", "What hangs?", "--model", "ADDRESS", "--set", "reader.timeout=3"),
    "document": ("ask", "ADDRESS/doc.txt", "What hangs?"),
    "rows": ("run", "mine", "--config", "mine.yaml", "--task", "remote"),
}


def _raw(first: bytes, again: bytes = b"", pause: float = 0.0) -> Callable[[Request], None]:
    """Returns a script that sends bytes, then others until the client or the test ends."""

    def script(request: Request) -> None:
        handler = request.handler
        handler.close_connection = True
        with suppress(OSError):
            handler.wfile.write(first)
            while again and not request.server.ending.wait(pause):
                handler.wfile.write(again)

    return script


_WAYS: Mapping[str, Callable[[Request], None]] = {
    "endless": _raw(_HEAD + b"\r\n", b" " * 2**20),
    "endless chunks": _raw(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
                           b"10000\r\n" + b" " * 2**16 + b"\r\n"),
    "endless text": _raw(_HEAD + b'\r\n{"choices": [{"message": {"content": "', b"x" * 2**20),
    "endless header": _raw(_HEAD + b"X: ", b"x" * 2**16),
    "endless headers": _raw(_HEAD, b"X: x\r\n" * 2**10),
    "endless status": _raw(b"HTTP/1.1 200 ", b"x" * 2**16),
    "endless interim replies": _raw(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2**10),
    "trickle": _raw(_HEAD + b"Content-Length: 1000\r\n\r\n", b" ", 0.2),
    "trickled headers": _raw(_HEAD, b"X: x\r\n", 0.2),
    "bomb": lambda request: request.send(_BOMB, Content_Encoding="gzip"),
    "deep": lambda request: request.send(b"[" * 10**6),
    "redirects": lambda request: request.send(b"", 302, Location=request.path),
    "huge length": _raw(_HEAD + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n", b" " * 2**20),
    "negative length": _raw(_HEAD + b"Content-Length: -1\r\n\r\n{}"),
    "broken chunks": _raw(_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"),
    "no HTTP": _raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "nothing": _raw(b""),
    "other errors": lambda request: request.fail(418, {"message": "x" * 10**7}),
}  # fmt: skip


@dataclass(frozen=True)
class Reply:
    """A way to reply to a command's requests."""

    way: str  # name of the way
    verb: str  # name of the command

    def run(self, folder: Path) -> str | None:
        """Runs the command; returns a line on the fault, or None."""
        with running(_WAYS[self.way]) as server:
            config = _CONFIG.replace("ADDRESS", server.base_url)
            files = {"doc.txt": "The lamp hangs.", "rows.jsonl": _ROW, "mine.yaml": config}
            write_files(folder, files)
            words = (word.replace("ADDRESS", server.base_url) for word in _COMMANDS[self.verb])
            # A child begins with the memory of this process, which counts as its peak.
            before = max(_megabytes(), _megabytes(resource.RUSAGE_SELF))
            ended = leporello(folder, *words)
        used = _megabytes()
        if used > max(before, _MEGABYTES):
            return f"took {used:.0f} MB"
        return wrong(ended, *((0,) if self.verb == "document" else ()), 1, 2)  # any bytes are text


def _megabytes(who: int = resource.RUSAGE_CHILDREN) -> float:
    """Returns the peak memory of the commands so far, or of this process."""
    return resource.getrusage(who).ru_maxrss / 1024


def case(random: Random, number: int) -> Reply:
    """Returns a case; each way meets each command in turn."""
    del random
    ways, verbs = [*_WAYS], [*_COMMANDS]
    return Reply(ways[number % len(ways)], verbs[(number + number // len(ways)) % len(verbs)])
