"""Web server with files in memory, and object store on the disk, for tests of storage."""

import base64
import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from endpoint_server import Request, running
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem


@dataclass
class Web:
    """Web server, with its faults."""

    files: dict[str, bytes] = field(default_factory=dict)  # by path
    url: str = ""  # without a slash at its end
    status: int = 0  # if not 0, all requests are refused with it
    cut: int = 0  # if not 0, number of bytes after which downloads break off
    failing: int = 0  # if not 0, downloads after the first one are refused with this status
    etag: str = ""  # of all files; by default, their hashes
    password: str = ""  # that the user `me` must send
    elsewhere: str = ""  # address to redirect to
    trickle: float = 0.0  # seconds between the bytes of an answer
    # Method, path and range of each request.
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)

    def downloads(self, path: str) -> list[str | None]:
        """Returns the ranges of all downloads of a file."""
        return [span for method, at, span in self.requests if (method, at) == ("GET", path)]

    def answer(self, request: Request) -> None:
        """Answers a request with a file, a part of it, or a fault."""
        handler, path = request.handler, request.path.partition("?")[0]
        failing = self.failing if handler.command == "GET" and self.downloads(path) else 0
        self.requests.append((handler.command, path, request.headers.get("range")))
        secret = base64.b64encode(f"me:{self.password}".encode()).decode()
        handler.close_connection = True
        handler.protocol_version = "HTTP/1.0"  # otherwise clients would use the connection again
        if self.password and request.headers.get("authorization") != f"Basic {secret}":
            handler.send_error(401)
        elif status := self.status or failing:
            handler.send_error(status)
        elif path not in self.files:
            request.send(b"", 404, X_Error_Code="EntryNotFound" if "/resolve/" in path else "")
        elif self.elsewhere:
            request.send(b"", 302, Location=self.elsewhere + path)
        elif self.trickle:
            for byte in b"HTTP/1.1 200 OK\r\nX-Filler: " + b"x" * 1000:
                handler.wfile.write(bytes([byte]))
                time.sleep(self.trickle)
        else:
            self._send(handler, self.files[path], request.headers.get("range", ""))

    def _send(self, handler: BaseHTTPRequestHandler, file: bytes, span: str) -> None:
        start = re.fullmatch(r"bytes=(\d+)-", span)
        content = file[int(start[1]) :] if start else file
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Length", str(len(content)))
        handler.send_header("ETag", f'"{self.etag or hashlib.sha256(file).hexdigest()}"')
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(content[: self.cut or None])


@contextmanager
def serving(web: Web) -> Iterator[Web]:
    """Runs the server until the block ends."""
    with running(web.answer) as server:
        web.url = server.base_url.removesuffix("/v1")
        yield web


class Shelf(DirFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Object store in the folder SHELF, with ETags and atomic writes."""

    protocol = "shelf"
    cachable = False
    writes: int | None = None  # until one fails; None for no limit
    fault: Exception | None = None  # that all requests raise
    names: ClassVar[list[str]] = []  # of the files that were read and written, in order

    def __init__(self, **options: Any) -> None:
        super().__init__(path=os.environ["SHELF"], fs=LocalFileSystem(), **options)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        self._raise_fault()
        return self._with_etag(super().info(path, **options))

    def find(self, path: str, *arguments: Any, **options: Any) -> Any:
        self._raise_fault()
        files = super().find(path, *arguments, **options)
        return {name: self._with_etag(info) for name, info in files.items()}

    def cat_file(self, path: str, *arguments: Any, **options: Any) -> Any:
        self._raise_fault()
        return super().cat_file(path, *arguments, **options)

    def get(self, rpath: list[str], lpath: list[str], **options: Any) -> None:
        self._raise_fault()
        Shelf.names += rpath
        super().get(rpath, lpath, **options)

    def put(self, lpath: list[str], rpath: list[str], mode: str = "overwrite", **_: Any) -> None:
        for file, path in zip(lpath, rpath, strict=True):
            self._count_write()
            to, bucket = Path(self._join(path)), Path(self._join(path.partition("/")[0]))
            if not bucket.is_dir():
                raise FileNotFoundError("The specified bucket does not exist")
            # Outside all buckets, so that a file is listed only when it is complete.
            part = Path(os.environ["SHELF"]) / f".{threading.get_ident()}"
            to.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(Path(file).read_bytes())
            if mode == "create":
                try:
                    to.hardlink_to(part)  # fails if the file exists
                finally:
                    part.unlink()
            else:
                part.replace(to)
            Shelf.names.append(path)

    def rm(self, path: list[str], *_: Any, **__: Any) -> None:
        self._count_write()
        for name in path:
            Path(self._join(name)).unlink(missing_ok=True)

    def _with_etag(self, info: dict[str, Any]) -> dict[str, Any]:
        if info["type"] != "file":
            return info
        content = Path(self._join(info["name"])).read_bytes()
        return {**info, "ETag": hashlib.md5(content, usedforsecurity=False).hexdigest()}

    def _raise_fault(self) -> None:
        if Shelf.fault:
            raise Shelf.fault

    def _count_write(self) -> None:
        self._raise_fault()
        if Shelf.writes is not None:
            if Shelf.writes == 0:
                raise TimeoutError("no answer")
            Shelf.writes -= 1


def register() -> None:
    """Registers the protocol `shelf://` in this process."""
    fsspec.register_implementation("shelf", Shelf, clobber=True)
