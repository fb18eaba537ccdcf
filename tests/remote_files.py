"""Servers for the tests: a web server with files in memory, and an object store on the disk."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem


@dataclass
class Web:
    """A web server.

    Attributes:
        files: By path.
        url: Of the server, without a slash at its end.
        status: With which all is refused, if not 0.
        cut: Bytes after which downloads break off, if not 0.
        silent: Whether it tells no ETags.
        password: That it wants, of the user `me`.
        asked: Method, path and range of each request.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    url: str = ""
    status: int = 0
    cut: int = 0
    silent: bool = False
    password: str = ""
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)

    def downloads(self, path: str) -> list[str | None]:
        """Returns the ranges of all downloads of a file."""
        return [asked for method, at, asked in self.asked if (method, at) == ("GET", path)]


@contextmanager
def serving(web: Web) -> Iterator[Web]:
    """Serves until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(web))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    web.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()


def _handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, *, with_body: bool) -> None:
            path, wanted = self.path.partition("?")[0], self.headers.get("Range")
            web.asked.append((self.command, path, wanted))
            secret = base64.b64encode(f"me:{web.password}".encode()).decode()
            if web.password and self.headers.get("Authorization") != f"Basic {secret}":
                self.send_error(401)
            elif web.status or path not in web.files:
                self.send_error(web.status or 404)
            else:
                self._send(web.files[path], wanted, with_body=with_body)

        def _send(self, whole: bytes, wanted: str | None, *, with_body: bool) -> None:
            found = re.fullmatch(r"bytes=(\d+)-", wanted or "")
            content = whole[int(found[1]) :] if found else whole
            self.send_response(206 if found else 200)
            self.send_header("Content-Length", str(len(content)))
            if not web.silent:
                self.send_header("ETag", f'"{hashlib.sha256(whole).hexdigest()}"')
            self.end_headers()
            if with_body:
                self.wfile.write(content[: web.cut or None])
            self.close_connection = True

    return Handler


class Shelf(DirFileSystem):  # type: ignore[misc]  # fsspec has no types
    """An object store in the folder SHELF: content has ETags, files are made only if there is none.

    Attributes:
        writes: How many more writes it takes; None takes all.
        down: Whether it does not answer.
        denied: Whether it refuses everybody.
    """

    protocol = "shelf"
    cachable = False
    writes: int | None = None
    down = denied = False

    def __init__(self, **options: Any) -> None:
        super().__init__(path=os.environ["SHELF"], fs=LocalFileSystem(), **options)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        self._asked()
        return self._with_etag(super().info(path, **options))

    def find(self, path: str, *given: Any, **options: Any) -> Any:
        self._asked()
        found = super().find(path, *given, **options)
        return {name: self._with_etag(info) for name, info in found.items()}

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        self._written()
        file = Path(self._join(path))
        if not file.parent.is_dir():
            raise FileNotFoundError(path)
        if mode == "create" and file.exists():
            raise FileExistsError(path)
        part = file.with_name(f".{file.name}.{threading.get_ident()}")
        part.write_bytes(value)
        part.replace(file)  # whole or not at all, as in object stores

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def rm_file(self, path: str) -> None:
        self._written()
        Path(self._join(path)).unlink()

    def _with_etag(self, info: dict[str, Any]) -> dict[str, Any]:
        if info["type"] != "file":
            return info
        content = Path(self._join(info["name"])).read_bytes()
        return {**info, "ETag": hashlib.md5(content, usedforsecurity=False).hexdigest()}

    def _asked(self) -> None:
        if Shelf.denied:
            raise PermissionError("AccessDenied")
        if Shelf.down:
            raise TimeoutError("no answer")

    def _written(self) -> None:
        self._asked()
        if Shelf.writes is not None:
            if Shelf.writes == 0:
                raise TimeoutError("no answer")
            Shelf.writes -= 1


def register() -> None:
    """Makes `shelf://` a protocol of this process."""
    fsspec.register_implementation("shelf", Shelf, clobber=True)
