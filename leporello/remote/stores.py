"""Servers that have files: what they say of one, and its bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from leporello.errors import UserError, did_you_mean
from leporello.redaction import scrub
from leporello.remote.addresses import expanded, is_web, protocol_of

__all__ = [
    "Facts",
    "FsspecStore",
    "MissingError",
    "Store",
    "UnreachableError",
    "blocks",
    "file_system",
    "store",
    "told",
    "version_of",
]

_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
_BLOCK = 1 << 23  # bytes
# What file systems of fsspec say of a file's content; else of the time at which it was written.
_CONTENT = ("ETag", "etag", "generation", "md5Hash", "content_md5")
_TIME = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")


class MissingError(UserError):
    """There is no such file."""


class UnreachableError(UserError):
    """The server does not answer, or not as it should."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says of a file.

    Attributes:
        size: In bytes; None where it does not say.
        version: Differs where the content does; empty where it does not say.
    """

    size: int | None
    version: str


class Store(Protocol):
    """One file or folder at a URL.

    All raise UserError: `MissingError` where there is nothing, `UnreachableError` where the server
    does not answer.
    """

    def facts(self) -> Facts:
        """Asks what is there now."""
        ...

    def exists(self) -> bool:
        """Asks whether anything is there."""
        ...

    def is_folder(self) -> bool:
        """Asks whether a folder is there."""
        ...

    def names(self) -> list[str]:
        """Returns what stands in a folder, sorted."""
        ...

    def reading(self, start: int) -> AbstractContextManager[tuple[int, Iterator[bytes]]]:
        """Gives where reading really begins, and the blocks from there on."""
        ...


def store(url: str) -> Store:
    """Returns what is at a URL; nothing is asked yet.

    Raises:
        UserError: A protocol that there is not, or whose package is not installed; an environment
            variable in the URL that is not set.
    """
    if is_web(url):
        from leporello.remote.web import WebStore

        return WebStore(url, expanded(url))
    return FsspecStore(url, *file_system(url))


def file_system(url: str) -> tuple[Any, str]:
    """Returns a file system of fsspec, and the path there."""
    import fsspec
    from fsspec.registry import known_implementations, registry

    protocol, known = protocol_of(url), {*known_implementations, *registry}
    if protocol not in known:
        raise UserError(f"{url}: there is no protocol {protocol!r}{did_you_mean(protocol, known)}")
    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as error:
        extra = _EXTRAS.get(protocol)
        how = f"install it with: pip install 'leporello[{extra}]'" if extra else str(error)
        raise UserError(
            f"{url}: the package for {protocol}:// is not installed here; {how}"
        ) from None
    with told(url):
        system, path = fsspec.url_to_fs(expanded(url))
    return system, path


@contextmanager
def told(url: str) -> Iterator[None]:
    """Turns what the libraries of a protocol raise into words for the user."""
    try:
        yield
    except UserError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise MissingError(f"{url}: there is no such file") from None
    except PermissionError as error:
        raise UserError(
            f"{url}: access is refused ({_first_line(error)}); look at the credentials, which"
            f" are those of the environment, as {protocol_of(url)}'s other programs take them"
        ) from None
    except Exception as error:  # each library has its own errors, without a common class
        raise UnreachableError(
            f"{url}: the server cannot be reached, or does not answer as it should"
            f" ({_first_line(error)}); look at the address, the network and the credentials"
        ) from error


def blocks(url: str, given: Iterator[bytes]) -> Iterator[bytes]:
    """Yields blocks, with the server's faults told; those of who takes them are none of its."""
    while True:
        with told(url):
            block = next(given, b"")
        if not block:
            return
        yield block


def _first_line(error: Exception) -> str:
    line = scrub(str(error)).strip().partition("\n")[0]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def version_of(info: Mapping[str, Any]) -> str:
    """Returns what tells a file's content from another one's."""
    marks = [info[mark] for mark in _CONTENT if info.get(mark)]
    marks = marks or [info[mark] for mark in _TIME if info.get(mark)]
    if not marks:
        return ""
    return hashlib.sha256(f"{marks} {info.get('size')}".encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class FsspecStore:
    """What a file system of fsspec has; see `Store`.

    Attributes:
        url: As it is shown.
        system: The file system.
        path: There.
    """

    url: str
    system: Any
    path: str

    def facts(self) -> Facts:
        """See `Store`."""
        info = self._asked(lambda: self.system.info(self.path))
        if info.get("type") == "directory":
            raise MissingError(f"{self.url}: is a folder; name one file")
        return Facts(info.get("size"), version_of(info))

    def exists(self) -> bool:
        """See `Store`."""
        try:
            self._asked(lambda: self.system.info(self.path))
        except MissingError:
            return False
        return True

    def is_folder(self) -> bool:
        """See `Store`."""
        return bool(self._asked(lambda: self.system.isdir(self.path)))

    def names(self) -> list[str]:
        """See `Store`."""
        found = self._asked(lambda: self.system.ls(self.path, detail=False))
        last = (str(path).rstrip("/").rpartition("/")[2] for path in found)
        return sorted(name for name in last if name)

    @contextmanager
    def reading(self, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """See `Store`."""
        with told(self.url):
            file = self.system.open(self.path, "rb")
            file.seek(start)
        try:
            yield start, blocks(self.url, iter(lambda: file.read(_BLOCK), b""))
        finally:
            file.close()

    def _asked(self, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 -- whatever is asked for
        with told(self.url):
            self.system.invalidate_cache(self.path)  # what it was told before may be over
            return ask()
