"""Read-only file system of web servers; fsspec's own one would need another HTTP library."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
from fsspec.spec import AbstractFileSystem

from leporello.core.environment.platform import within
from leporello.core.secrets import redact

# So these statuses get the same messages as S3's and the disk's errors.
_ERRORS = {401: PermissionError, 403: PermissionError, 404: FileNotFoundError}
_HEADERS = {"Accept-Encoding": "identity"}  # uncompressed, so that sizes and ETags match
_TIMEOUT = 30.0  # seconds until the response, with redirects, and between bytes
# A timeout between bytes alone lets a server that sends one byte every 29 s hold a run forever.
_GRACE, _SLOWEST = 30.0, 1000  # seconds; bytes per second, since slow servers would never finish

_LARGEST = 2**36  # bytes of a file
# Servers of files send their sizes; a reply without one may never end, and fill the disk before.
_UNSIZED = 2**30  # bytes of a file whose size the server does not send


def _keep_key(response: httpx2.Response) -> None:
    """Prevents redirects of a request with a key to another host, or to plain HTTP."""
    source, request = response.url, response.request
    if not response.has_redirect_location:
        return
    target = source.join(response.headers["Location"])
    has_key = "Authorization" in request.headers or redact(str(source)) != str(source)
    is_safe = target.host == source.host and target.scheme in (source.scheme, "https")
    if has_key and not is_safe:
        raise ConnectionError(
            f"it redirects to {target.scheme}://{target.host}, but keys are not sent to another"
            " host or over plain HTTP; use the address there"
        )


_client = httpx2.Client(
    follow_redirects=True, timeout=_TIMEOUT, headers=_HEADERS, event_hooks={"response": [_keep_key]}
)


class WebFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Read-only file system whose paths are complete URLs."""

    def info(self, path: str, **_: object) -> dict[str, object]:
        """Returns the metadata of a file."""
        try:
            with _request("HEAD", path) as response:
                headers = response.headers
        except TimeoutError:
            raise  # a GET would take as long again
        except OSError:  # signed URLs, for example, may reject HEAD
            with _request("GET", path) as response:
                headers = response.headers
        # Weak and strong ETags count as equal: servers add `W/` when they compress.
        version = headers.get("ETag", "").removeprefix("W/") or headers.get("Last-Modified")
        size = headers.get("Content-Length")
        return {"name": path, "type": "file", "size": size, "etag": version}

    def get_file(self, rpath: str, lpath: str, **_: object) -> None:
        """Downloads one file."""
        with _request("GET", rpath) as response, Path(lpath).open("wb") as file:
            start = time.monotonic()
            largest = _LARGEST if "Content-Length" in response.headers else _UNSIZED
            # Raw bytes, so the size on disk equals Content-Length, which the version includes.
            for block in response.iter_raw():
                size = file.tell() + file.write(block)
                if size > largest:
                    raise OSError(f"it sends more than {largest:,} bytes")
                if (elapsed := time.monotonic() - start) > _GRACE and size < elapsed * _SLOWEST:
                    raise TimeoutError(f"{size:,} bytes in {elapsed:.0f} s")


@contextmanager
def _request(method: str, url: str) -> Iterator[httpx2.Response]:
    request = _client.build_request(method, url)
    response = within(_TIMEOUT, lambda: _client.send(request, stream=True))
    with closing(response):
        if not response.is_success:
            kind = _ERRORS.get(response.status_code, ConnectionError)
            raise kind(f"the server answers {response.status_code} {response.reason_phrase}")
        yield response
