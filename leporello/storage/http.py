"""Files of web servers, for fsspec, whose own way to them needs another HTTP library."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
from fsspec.spec import AbstractFileSystem

from leporello.core.environment.deadlines import within
from leporello.core.secrets import redact

_ERRORS = {401: PermissionError, 403: PermissionError, 404: FileNotFoundError}
_HEADERS = {"Accept-Encoding": "identity"}  # whole bytes as they lie there, as sizes and ETags
_TIMEOUT = 30.0  # seconds to an answer, redirects and all, and from byte to byte
_LOOK, _SLOWEST = 60.0, 1000  # seconds; bytes a second: a server that trickles would take for ever


def _keep_key(answer: httpx2.Response) -> None:
    """Refuses to follow a redirect with a key to another host, or over plain HTTP.

    Raises:
        ConnectionError: The server redirects there.
    """
    here, request = answer.url, answer.request
    if not answer.has_redirect_location:
        return
    there = here.join(answer.headers["Location"])
    has_key = "Authorization" in request.headers or redact(str(here)) != str(here)
    is_safe = there.host == here.host and there.scheme in (here.scheme, "https")
    if has_key and not is_safe:
        raise ConnectionError(
            f"it redirects to {there.scheme}://{there.host}, and a key goes to no other host and"
            " not over plain HTTP: give the address there"
        )


_client = httpx2.Client(
    follow_redirects=True,
    timeout=_TIMEOUT,
    headers=_HEADERS,
    event_hooks={"response": [_keep_key]},
)


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
            began = time.monotonic()
            for block in answer.iter_raw():
                size = file.tell() + file.write(block)
                if (passed := time.monotonic() - began) > _LOOK and size < passed * _SLOWEST:
                    raise TimeoutError(f"{size:,} bytes in {passed:.0f} s")


@contextmanager
def _asked(method: str, url: str) -> Iterator[httpx2.Response]:
    request = _client.build_request(method, url)
    answer = within(_TIMEOUT, lambda: _client.send(request, stream=True))
    with closing(answer):
        if not answer.is_success:
            kind = _ERRORS.get(answer.status_code, ConnectionError)
            raise kind(f"the server answers {answer.status_code} {answer.reason_phrase}")
        yield answer
