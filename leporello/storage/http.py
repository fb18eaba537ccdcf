"""Files of web servers, for fsspec, whose own way to them needs another HTTP library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from fsspec.spec import AbstractFileSystem

_ERRORS = {401: PermissionError, 403: PermissionError, 404: FileNotFoundError}
_HEADERS = {"Accept-Encoding": "identity"}  # whole bytes as they lie there, as sizes and ETags
_client = httpx2.Client(follow_redirects=True, timeout=30.0, headers=_HEADERS)


class WebFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A web server's files, by their whole URLs; they are only read."""

    def info(self, path: str, **_: object) -> dict[str, object]:
        """Returns what the server says of a file."""
        try:
            with _asked("HEAD", path) as answer:
                headers = answer.headers
        except OSError:  # some refuse HEAD, as signed addresses do
            with _asked("GET", path) as answer:
                headers = answer.headers
        version = headers.get("ETag", "").removeprefix("W/") or headers.get("Last-Modified")
        size = headers.get("Content-Length")
        return {"name": path, "type": "file", "size": size, "etag": version}

    def get_file(self, rpath: str, lpath: str, **_: object) -> None:
        """Copies a file from there."""
        with _asked("GET", rpath) as answer, Path(lpath).open("wb") as file:
            for block in answer.iter_raw():
                file.write(block)


@contextmanager
def _asked(method: str, url: str) -> Iterator[httpx2.Response]:
    with _client.stream(method, url) as answer:
        if not answer.is_success:
            kind = _ERRORS.get(answer.status_code, ConnectionError)
            raise kind(f"the server answers {answer.status_code} {answer.reason_phrase}")
        yield answer
