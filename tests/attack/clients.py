"""Attacks of local clients on `serve`, with and without its token.

Meanwhile the owner's requests are answered soon. The server takes little memory, writes few lines
without a traceback, sends no text of the document to clients without the token, and ends at Ctrl-C.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random

from tests.attack.command import slowness

_SECONDS, _MEGABYTES, _LINES = 10, 400, 700
_WORD = "Heliotrope"  # in the document
_GET = b"GET /documents HTTP/1.1\r\nHost: HOST\r\n"
_POST = _GET.replace(b"GET", b"POST")
_UPLOAD = _POST + b"Content-Disposition: attachment; filename=a.txt\r\n"
_CHUNK = b"10000\r\n" + b"x" * 2**16 + b"\r\n"
# For each way: its number of connections, the first bytes of each, and bytes that follow them
# until the server closes the connection.
_WAYS: Mapping[str, tuple[int, bytes, bytes]] = {
    "half requests": (400, _GET, b""),
    "nothing": (400, b"", b""),
    "complete requests": (400, _GET + b"\r\n", b""),
    "public requests": (400, _GET.replace(b"documents", b"page.js") + b"\r\n", b""),
    "pipelined requests": (50, (_GET + b"\r\n") * 100, b""),
    "a huge body": (1, _POST + b"Content-Length: 1000000000\r\n\r\n", b"x" * 2**16),
    "huge bodies": (8, _UPLOAD + b"Content-Length: 200000000\r\n\r\n", b"x" * 2**16),
    "endless chunks": (8, _UPLOAD + b"Transfer-Encoding: chunked\r\n\r\n", _CHUNK),
    "endless questions": (8, _POST.replace(b"documents", b"ask")
                          + b"Transfer-Encoding: chunked\r\n\r\n", _CHUNK),
    "endless headers": (8, _GET, b"X: x\r\n" * 1000),
    "an endless header": (8, _GET + b"X: ", b"x" * 2**16),
    "an endless address": (8, b"GET /", b"x" * 2**16),
    "no HTTP": (50, b"\x16\x03\x01\x02\x00\x01" + os.urandom(200), b""),
    "odd numbers": (1, _POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", b""),
    "odd offsets": (1, _GET.replace(b" HTTP", b"/0/text?start=" + b"9" * 5000 + b" HTTP") + b"\r\n",
                    b""),
    "another host": (1, _GET.replace(b"HOST", b"evil.example") + b"\r\n", b""),
    "a cookie": (1, _GET + b"Cookie: token=TOKEN\r\n\r\n", b""),
}  # fmt: skip


@dataclass(frozen=True)
class Crowd:
    """Clients that do the same."""

    way: str  # name of their attack
    has_token: bool  # whether they have the token

    def run(self, folder: Path) -> str | None:
        """Starts the server and the clients; returns a line on the fault, or None."""
        (folder / "doc.txt").write_text(f"{_WORD} grows here.", "utf-8")
        with ExitStack() as stack:
            log = stack.enter_context((folder / "log").open("w"))
            server = subprocess.Popen(
                [sys.executable, "-m", "leporello", "serve", "doc.txt", "--no-cache"],
                cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip
            stack.callback(server.wait)
            stack.callback(server.kill)
            assert server.stdout
            address, _, token = server.stdout.readline().strip().partition("/#token=")
            fault = self._attack(stack, int(address.rpartition(":")[2]), token)
            memory = Path(f"/proc/{server.pid}/status").read_text()
            server.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                server.wait(_SECONDS * slowness())
        log_lines = (folder / "log").read_text("utf-8").splitlines()
        used = int(re.findall(r"VmHWM:\s*(\d+)", memory)[0]) / 1024
        return (
            fault
            or (f"took {used:.0f} MB" if used > _MEGABYTES else None)
            or (f"wrote {len(log_lines)} lines" if len(log_lines) > _LINES else None)
            or ("a traceback" if any("Traceback" in line for line in log_lines) else None)
            or (f"status {server.returncode}" if server.returncode else None)
        )

    def _attack(self, stack: ExitStack, port: int, token: str) -> str | None:
        count, first, again = _WAYS[self.way]
        first = first.replace(b"HOST", f"127.0.0.1:{port}".encode())
        first = first.replace(b"TOKEN", token.encode())
        if self.has_token:
            bearer = f"\r\nAuthorization: Bearer {token}\r\n".encode()
            first = first.replace(b"\r\n", bearer, 1)
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            for _ in range(count)
        ]
        with ThreadPoolExecutor(count) as pool:
            replies = [pool.submit(_send, client, first, again) for client in clients]
            start = time.monotonic()
            owner = HTTPConnection("127.0.0.1", port, timeout=_SECONDS * slowness())
            headers = {"Authorization": f"Bearer {token}"}
            try:
                owner.request("GET", "/documents/0/text?start=0&end=9", headers=headers)
                content = owner.getresponse().read().decode()
            except (OSError, HTTPException) as error:
                return f"the owner is locked out: {error}"
            took = time.monotonic() - start
            received = b"".join(reply.result() for reply in replies)
        if _WORD not in content or took > _SECONDS * slowness():
            return f"the owner waited {took:.0f} s for {content[:80]}"
        if b"set-cookie" in received.lower():
            return "sets a cookie"
        is_leak = _WORD.encode() in received or b'"doc.txt"' in received
        return "sends the document to a stranger" if is_leak and not self.has_token else None


def _send(client: socket.socket, first: bytes, again: bytes) -> bytes:
    """Sends bytes until the server closes the connection; returns its reply."""
    client.settimeout(1)
    sent = 0
    with suppress(OSError):
        client.sendall(first)
        while again and sent < 2**29:
            client.sendall(again)
            sent += len(again)
    with suppress(OSError):
        return client.recv(2**16)
    return b""


def case(random: Random, number: int) -> Crowd:
    """Returns a case; all ways occur in turn, with and without the token."""
    del random
    return Crowd([*_WAYS][number % len(_WAYS)], has_token=number // len(_WAYS) % 2 == 1)
