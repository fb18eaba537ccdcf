"""What lies at a URL: a file, or a folder's files by name; every fault is told in words.

Copies lie in LEPORELLO_CACHE/files/URL/VERSION/NAME: another version never touches one that is
being read, which fsspec's own `filecache` would write over.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from leporello.core.environment.extras import install_command
from leporello.core.errors import UserError
from leporello.core.secrets import key, redact
from leporello.models.locate import cache_directory

LOCK, PARTIAL = ".lock.json", ".part"
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What file systems of fsspec tell one content of a file from another by, the best first.
_VERSIONS = ("ETag", "etag", "LastModified", "last_modified", "mtime", "modified", "created")
VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = re.compile(r"^\.+|[^\w.,=@+-]+")
T = TypeVar("T")
_log = logging.getLogger("leporello")


class MissingError(UserError):
    """There is no such file."""


@dataclass(frozen=True, slots=True)
class Location:
    """A file or a folder at a URL; the name `""` is that of what lies at the URL itself.

    All methods raise UserError where access is refused, a server does not answer, a package is
    missing, or a disk is full; `MissingError` where there is nothing.
    """

    url: str

    def info(self) -> Mapping[str, Any]:
        """Returns what is said of it now: its `type`, `size`, and more."""
        return dict(self._do(lambda system, path: system.info(path)))

    def files(self, under: str = "") -> dict[str, Mapping[str, Any]]:
        """Returns what is said of each file of a folder, by name; nothing if there is none."""
        with suppress(MissingError):
            root, found = self._do(
                lambda system, path: (path, system.find(path, detail=True)), under
            )
            start = len(root.removesuffix(under).rstrip("/")) + 1
            names = {path[start:]: info for path, info in found.items()}
            return {
                n: i for n, i in names.items() if n not in ("", LOCK) and not n.endswith(PARTIAL)
            }
        return {}

    def copy(self) -> Path:
        """Returns this machine's copy of a file, fetched if it has none of the version there."""
        from filelock import FileLock

        path = local_copy("files", self.url)
        try:
            version = version_of(self.info())
            copy = path.parent / version / path.name
            if not version or not copy.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                with FileLock(path.with_name(".lock")):
                    copy = copy if version and copy.exists() else self._fetch(version, path)
            with suppress(OSError):
                os.utime(copy.parent)  # when it was used last, for `cache gc`
        except OSError as error:
            raise UserError(f"{self.url}: no copy in {path.parent}: {error}") from error
        except UserError as error:
            kept = f"; copies of before lie in {path.parent}" if [*path.parent.glob("*/*")] else ""
            raise type(error)(f"{error}{kept}") from error
        return copy

    def get(self, files: Mapping[str, Path]) -> None:
        """Copies files from there, several at once; each stands in its place only when whole."""
        parts = {name: to.with_name(f".{to.name}{PARTIAL}") for name, to in files.items()}
        for part in parts.values():
            part.parent.mkdir(parents=True, exist_ok=True)
        to = list(map(str, parts.values()))
        self._do(lambda system, root: system.get(_below(root, parts), to))
        for name, part in parts.items():
            part.replace(files[name])

    def put(self, files: Mapping[str, Path], *, create: bool = False) -> None:
        """Copies files there, several at once, each whole or not at all."""

        def copy(system: Any, root: str) -> None:  # noqa: ANN401 -- fsspec's
            paths, local = _below(root, files), list(map(str, files.values()))
            if system.async_impl:  # an object store, where nothing is ever half written
                with suppress(FileExistsError):  # it is to be created, and there is one
                    system.put(local, paths, mode="create" if create else "overwrite")
                return
            for file, path in zip(local, paths, strict=True):
                system.makedirs(path.rpartition("/")[0], exist_ok=True)
                if not (create and system.exists(path)):
                    part = f"{path}.{secrets.token_hex(4)}{PARTIAL}"  # others may put it just now
                    system.put_file(file, part)
                    system.mv(part, path)

        self._do(copy)

    def read(self, name: str) -> bytes | None:
        """Returns what a small file holds; None if there is none."""
        with suppress(MissingError):
            return bytes(self._do(lambda system, path: system.cat_file(path), name))
        return None

    def remove(self, names: Collection[str]) -> None:
        """Removes files; that they are gone already is no fault."""
        with suppress(MissingError):
            if names:
                self._do(lambda system, root: system.rm(_below(root, names)))

    def _fetch(self, version: str, path: Path) -> Path:
        """Fetches a file beside its place, and renames it there."""
        _log.info("fetching %s", self.url)
        part = path.with_name(path.name + PARTIAL)
        self.get({"": part})
        if version_of(self.info()) != version:
            raise UserError(f"{self.url}: has changed while it was fetched; run it again")
        if not version:  # the server does not say: then the content does
            with part.open("rb") as file:
                version = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        copy = path.parent / version / path.name
        copy.parent.mkdir(exist_ok=True)
        return part.replace(copy)

    def _do(self, action: Callable[[Any, str], T], name: str = "") -> T:
        with _explained(f"{self.url}/{name}" if name else self.url):
            if is_web(self.url):
                from leporello.storage.http import WebFileSystem

                return action(WebFileSystem(), expanded(self.url))
            import fsspec

            system, root = fsspec.url_to_fs(expanded(self.url))
            [path] = _below(root, [name])
            system.invalidate_cache(path)  # what it was told before may be over
            return action(system, path)


def version_of(info: Mapping[str, Any]) -> str:
    """Returns what tells a file's content from another one's; empty if fsspec does not say."""
    mark = next((info[key] for key in _VERSIONS if info.get(key)), None)
    text = f"{mark} {info.get('size')}"
    return hashlib.sha256(text.encode()).hexdigest()[:16] if mark else ""


def is_web(url: str) -> bool:
    """Says whether a web server is asked."""
    return url.startswith(("http://", "https://"))


def local_copy(kind: str, url: str) -> Path:
    """Returns where this machine keeps its copy: `LEPORELLO_CACHE/KIND/HASH/NAME`."""
    name = _UNSAFE.sub("-", url.partition("?")[0].rpartition("/")[2])[-100:]  # names have a limit
    return cache_directory() / kind / hashlib.sha256(url.encode()).hexdigest()[:16] / name


def expanded(url: str) -> str:
    """Returns a URL with what the environment has for the variables in it; never to be shown."""
    protocol, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    authority = VARIABLE.sub(lambda match: quote(key(match[0]), safe=""), authority)
    return f"{protocol}://{authority}{slash}{VARIABLE.sub(lambda match: key(match[0]), path)}"


def _below(root: str, names: Collection[str]) -> list[str]:
    return [f"{root.rstrip('/')}/{name}" if name else root for name in names]


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turns what the libraries of a protocol raise into words for the user."""
    try:
        yield
    except UserError:
        raise
    except (ImportError, ValueError) as error:  # no package for the protocol; no such protocol
        protocol = url.partition(":")[0]
        how = f"; {install_command(_EXTRAS[protocol])}" if protocol in _EXTRAS else ""
        raise UserError(f"{url}: {_first_line(error)}{how}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingError(f"{url}: there is no such file ({_first_line(error)})") from None
    except PermissionError as error:
        raise UserError(
            f"{url}: access is refused ({_first_line(error)}); look at the credentials: those of"
            " the environment, or for web servers '$NAME:$PASSWORD@' before the host"
        ) from None
    except Exception as error:  # each library has its own errors, without a common class
        if isinstance(error, OSError) and error.errno in _FULL:
            raise UserError(f"{url}: {error.strerror}: make room, and run it again") from None
        raise UserError(
            f"{url}: the server cannot be reached, or does not answer as it should"
            f" ({_first_line(error)}); look at the address, the network and the credentials"
        ) from error


def _first_line(error: Exception) -> str:
    line = redact(str(error)).strip().partition("\n")[0]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
