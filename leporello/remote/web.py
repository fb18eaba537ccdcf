"""Files of web servers: fsspec's own way to them needs another HTTP library, and knows no ETags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from leporello.errors import UserError
from leporello.remote.stores import Facts, MissingError, UnreachableError, blocks, told, version_of

if TYPE_CHECKING:
    from httpx2 import Client, Response

__all__ = ["WebStore"]

_TIMEOUT = 30.0  # seconds of silence
_OK, _PARTIAL, _MISSING = 200, 206, (404, 410)
_REFUSED = (401, 403, 407)


@dataclass(frozen=True, slots=True)
class WebStore:
    """A file of a web server; see `Store`.

    Attributes:
        url: As it is shown.
        address: With its secrets.
    """

    url: str
    address: str

    def facts(self) -> Facts:
        """See `Store`."""
        with self._asked("HEAD") as answer:
            if answer.status_code == _OK:
                return _facts(answer)
        with self._asked("GET") as answer:  # some refuse HEAD, as signed addresses do
            self._check(answer)
            return _facts(answer)

    def exists(self) -> bool:
        """See `Store`."""
        try:
            self.facts()
        except MissingError:
            return False
        return True

    def is_folder(self) -> bool:
        """Says no: web servers have no folders."""
        return False

    def names(self) -> list[str]:
        """See `Store`."""
        raise UserError(f"{self.url}: a web server does not list what it has; name a file")

    @contextmanager
    def reading(self, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """See `Store`."""
        with self._asked("GET", start) as answer:
            self._check(answer)
            begin = start if answer.status_code == _PARTIAL else 0
            yield begin, blocks(self.url, answer.iter_raw())

    @contextmanager
    def _asked(self, method: str, start: int = 0) -> Iterator[Response]:
        headers = {"Range": f"bytes={start}-"} if start else {}
        with told(self.url):
            request = _client().build_request(method, self.address, headers=headers)
            answer = _client().send(request, stream=True)
        try:
            yield answer
        finally:
            answer.close()

    def _check(self, answer: Response) -> None:
        status = answer.status_code
        if status in (_OK, _PARTIAL):
            return
        answered = f"the server answers {status} {answer.reason_phrase}"
        if status in _MISSING:
            raise MissingError(f"{self.url}: there is no such file ({answered})")
        if status in _REFUSED:
            raise UserError(
                f"{self.url}: access is refused ({answered}); a name and a password stand in the"
                " URL as environment variables: 'https://$NAME:$PASSWORD@host/…'"
            )
        raise UnreachableError(f"{self.url}: {answered}; try again later")


@cache
def _client() -> Client:
    import httpx2

    # Whole bytes as they lie there: sizes and ETags are of these.
    headers = {"Accept-Encoding": "identity"}
    return httpx2.Client(follow_redirects=True, timeout=_TIMEOUT, headers=headers)


def _facts(answer: Response) -> Facts:
    size = answer.headers.get("Content-Length", "")
    number = int(size) if size.isdecimal() else None
    marks = {"etag": answer.headers.get("ETag", "").removeprefix("W/")}
    marks["last_modified"] = answer.headers.get("Last-Modified", "")
    return Facts(number, version_of({**marks, "size": number}))
