"""Reads and writes the file or folder at a URL, and converts the libraries' errors to `UserError`.

Copies are stored in LEPORELLO_CACHE/files/URL/VERSION/NAME, so that a new version never overwrites
a copy that is being read. fsspec's `filecache` would overwrite it.
"""

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
from leporello.core.files import cache_directory
from leporello.core.secrets import VARIABLE, key, redact

LOCK, PARTIAL = ".lock.json", ".part"
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
# A full disk, a quota and a size limit need the same action, so they share one message.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Keys by which fsspec's file systems identify the version of a file, the best first.
# An ETag changes with the content; a time to the second misses a change within that second.
_VERSIONS = ("ETag", "etag", "LastModified", "last_modified", "mtime", "modified", "created")
_UNSAFE = re.compile(r"^\.+|[^\w.,=@+-]+")
T = TypeVar("T")
_log = logging.getLogger("leporello")


class MissingError(UserError):
    """The file does not exist."""


@dataclass(frozen=True, slots=True)
class Location:
    """A file or a folder at a URL; the name `""` denotes the URL itself.

    Methods raise UserError if they fail, and `MissingError` if nothing exists at the URL.
    """

    url: str

    def info(self) -> Mapping[str, Any]:
        """Returns the current metadata: `type`, `size`, and more."""
        return dict(self._call(lambda system, path: system.info(path)))

    def files(self, under: str = "") -> dict[str, Mapping[str, Any]]:
        """Returns the metadata of all files of a folder, by name; empty without files."""
        with suppress(MissingError):
            root, entries = self._call(
                lambda system, path: (path, system.find(path, detail=True)), under
            )
            start = len(root.removesuffix(under).rstrip("/")) + 1
            names = {path[start:]: info for path, info in entries.items()}
            # The lock and partial files belong to the protocols of other processes.
            return {n: names[n] for n in names if n not in ("", LOCK) and not n.endswith(PARTIAL)}
        return {}

    def copy(self) -> Path:
        """Returns this machine's copy of the file's current version, downloaded if necessary."""
        from filelock import FileLock

        path = local_copy("files", self.url)
        try:
            version = version_of(self.info())
            copy = path.parent / version / path.name
            if not version or not copy.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                # Workers start together and would all download the same gigabytes.
                with FileLock(path.with_name(".lock")):
                    # Checked again: another process may have fetched the file meanwhile.
                    copy = copy if version and copy.exists() else self._fetch(version, path)
            with suppress(OSError):
                os.utime(copy.parent)  # the time of last use, for `cache gc`
        except OSError as error:
            raise UserError(f"{self.url}: cannot be copied to {path.parent}: {error}") from error
        except UserError as error:
            # An old copy is never used in silence, but the message names it, so a user offline can.
            has_copies = any(path.parent.glob("*/*"))
            hint = f"; earlier copies are in {path.parent}" if has_copies else ""
            raise type(error)(f"{error}{hint}") from error
        return copy

    def get(self, files: Mapping[str, Path]) -> None:
        """Downloads files, several at once; each is renamed to its path when it is complete."""
        parts = {name: path.with_name(f".{path.name}{PARTIAL}") for name, path in files.items()}
        for part in parts.values():
            part.parent.mkdir(parents=True, exist_ok=True)
        paths = list(map(str, parts.values()))
        self._call(lambda system, root: system.get(_paths(root, parts), paths))
        # Renamed only now: readers of the folder never see a file that is still being downloaded.
        for name, part in parts.items():
            part.replace(files[name])

    def put(self, files: Mapping[str, Path], *, create: bool = False) -> None:
        """Uploads files, several at once; no incomplete file ever has its final name."""

        def copy(system: Any, root: str) -> None:  # noqa: ANN401 -- fsspec has no types
            paths, local = _paths(root, files), list(map(str, files.values()))
            if system.async_impl:  # an object store, which writes atomically
                with suppress(FileExistsError):  # raised if `create` is set and the file exists
                    system.put(local, paths, mode="create" if create else "overwrite")
                return
            for file, path in zip(local, paths, strict=True):
                system.makedirs(path.rpartition("/")[0], exist_ok=True)
                if not (create and system.exists(path)):
                    # A random name, because another process may be uploading the same file.
                    part = f"{path}.{secrets.token_hex(4)}{PARTIAL}"
                    system.put_file(file, part)
                    system.mv(part, path)

        self._call(copy)

    def read(self, name: str) -> bytes | None:
        """Returns the content of a small file; None if it does not exist."""
        with suppress(MissingError):
            return bytes(self._call(lambda system, path: system.cat_file(path), name))
        return None

    def remove(self, names: Collection[str]) -> None:
        """Removes files; ignores missing ones."""
        with suppress(MissingError):
            if names:
                self._call(lambda system, root: system.rm(_paths(root, names)))

    def _fetch(self, version: str, path: Path) -> Path:
        _log.info("fetching %s", self.url)
        part = path.with_name(path.name + PARTIAL)
        self.get({"": part})
        # Otherwise an upload during the download would leave half old, half new bytes.
        if version_of(self.info()) != version:
            raise UserError(f"{self.url}: has changed while it was fetched; run it again")
        if not version:  # the server has no version, so use a hash of the content
            with part.open("rb") as file:
                # So such a file is downloaded each time; its copies never overwrite each other.
                version = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        copy = path.parent / version / path.name
        copy.parent.mkdir(exist_ok=True)
        return part.replace(copy)

    def _call(self, action: Callable[[Any, str], T], name: str = "") -> T:
        with _user_errors(f"{self.url}/{name}" if name else self.url):
            # fsspec's own file system needs aiohttp and seven more packages.
            if is_web(self.url):
                from leporello.storage.http import WebFileSystem

                return action(WebFileSystem(), expanded(self.url))
            import fsspec

            system, root = fsspec.url_to_fs(expanded(self.url))
            [path] = _paths(root, [name])
            # fsspec would repeat a listing from minutes ago, without new shards of a run.
            system.invalidate_cache(path)  # the cached listing may be outdated
            return action(system, path)


def version_of(info: Mapping[str, Any]) -> str:
    """Returns an identifier of a file's version; empty if fsspec provides none."""
    mark = next((info[key] for key in _VERSIONS if info.get(key)), None)
    text = f"{mark} {info.get('size')}"
    return hashlib.sha256(text.encode()).hexdigest()[:16] if mark else ""


def is_web(url: str) -> bool:
    """Returns whether a URL belongs to a web server."""
    return url.startswith(("http://", "https://"))


def local_copy(kind: str, url: str) -> Path:
    """Returns the path of this machine's copy: `LEPORELLO_CACHE/KIND/HASH/NAME`."""
    name = _UNSAFE.sub("-", url.partition("?")[0].rpartition("/")[2])
    # The end, since it has the suffix, which loaders recognise formats by.
    name = name[-100:]  # file names have a limited length
    return cache_directory() / kind / hashlib.sha256(url.encode()).hexdigest()[:16] / name


def expanded(url: str) -> str:
    """Returns a URL with its variables replaced by their values; it must never be shown."""
    protocol, _, address = url.partition("://")
    authority, slash, path = address.partition("/")
    # Passwords may contain `@` or `/`, which would end the authority.
    authority = VARIABLE.sub(lambda match: quote(key(match[0]), safe=""), authority)
    return f"{protocol}://{authority}{slash}{VARIABLE.sub(lambda match: key(match[0]), path)}"


def _paths(root: str, names: Collection[str]) -> list[str]:
    return [f"{root.rstrip('/')}/{name}" if name else root for name in names]


@contextmanager
def _user_errors(url: str) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except (ImportError, ValueError) as error:  # the package is missing; the protocol is unknown
        protocol = url.partition(":")[0]
        hint = f"; {install_command(_EXTRAS[protocol])}" if protocol in _EXTRAS else ""
        raise UserError(f"{url}: {_first_line(error)}{hint}") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingError(f"{url}: there is no such file ({_first_line(error)})") from None
    except PermissionError as error:
        raise UserError(
            f"{url}: access is refused ({_first_line(error)}); check the credentials: those of"
            " the environment, or for web servers '$NAME:$PASSWORD@' before the host"
        ) from None
    # botocore, gcsfs, paramiko and aiohttp each raise classes of their own.
    except Exception as error:  # the libraries' errors have no common class
        if isinstance(error, OSError) and error.errno in _FULL:
            raise UserError(f"{url}: {error.strerror}: free space and run it again") from None
        raise UserError(
            f"{url}: the server cannot be reached or its answer is not valid"
            f" ({_first_line(error)}); check the address, the network and the credentials"
        ) from error


def _first_line(error: Exception) -> str:
    line = redact(str(error)).strip().partition("\n")[0]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
