"""A URL where a path is expected: what may stand in one, what is a secret, where its copy lies."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from glob import glob, has_magic
from os import PathLike
from pathlib import Path, PosixPath
from typing import IO, Any
from urllib.parse import parse_qsl

from leporello.core.errors import UserError
from leporello.storage.location import VARIABLE, Location, MissingError, is_web

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_COLLAPSED = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")  # as `Path` writes a URL
# Fields of a query that sign it.
_SIGNS = re.compile(r"(?i)(?:.*[_-])?((api)?key|token|sig|signature|credential|password|secret)")


class RemotePath(PosixPath):
    """A file or folder at a URL, made by `to_path`; who opens it reads this machine's copy of it.

    So whatever takes a path takes a URL, a plug-in's task too. As text it is the URL; to the
    operating system it is the copy. The server is asked each time that it is opened, or looked for.
    """

    def __str__(self) -> str:
        protocol, *rest = self.parts
        return f"{protocol}//{'/'.join(rest)}"

    def __truediv__(self, other: str | PathLike[str]) -> Path:  # type: ignore[override]  # may be another server's
        if is_url(text := str(other)):
            return to_path(text)
        if text.startswith(("/", "~")):
            raise UserError(f"{text}: is a path on this machine, and it is named at {self}")
        host, *folders = self.parts[1:]
        below = posixpath.normpath(f"/{'/'.join(folders)}/{text}")  # never above the host
        return RemotePath(f"{self.parts[0]}//{host}{below}")

    @property
    def name(self) -> str:
        """The last part; of a web address without its query."""
        return super().name.partition("?")[0] if is_web(str(self)) else super().name

    def __fspath__(self) -> str:
        """Returns where this machine's copy lies, fetched anew if it is of another version."""
        return str(Location(str(self)).copy())

    def exists(self) -> bool:
        """Asks the server; raises UserError if it does not answer."""
        return self._type() is not None

    def is_dir(self) -> bool:
        """Asks the server; web servers have no folders."""
        return self._type() == "directory"

    def iterdir(self) -> Iterator[RemotePath]:  # type: ignore[override]  # a generator, there
        """Yields what stands in a folder, in the order of names."""
        for name in sorted({name.split("/")[0] for name in Location(str(self)).files()}):
            yield RemotePath(f"{self}/{name}")

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:  # type: ignore[override]  # noqa: ANN401 -- as Path's
        """Opens the copy, for reading only."""
        if not {*"wax+"}.isdisjoint(mode):
            raise UserError(f"{self}: cannot be written to; give a path on this machine")
        return super().open(mode, *args, **kwargs)

    def resolve(self, strict: bool = False) -> RemotePath:  # noqa: ARG002, FBT -- as Path's
        """Returns itself: a URL counts from nowhere."""
        return self

    absolute = expanduser = resolve

    def _type(self) -> str | None:
        try:
            return str(Location(str(self)).info()["type"])
        except MissingError:
            return None


def is_url(text: str) -> bool:
    """Says whether this is a URL rather than a path."""
    return _URL.match(text) is not None


def is_there(text: str) -> bool:
    """Says whether this is a URL, or names a file, a folder, or a pattern that some fit."""
    if not text or is_url(text):
        return bool(text)
    with suppress(OSError, ValueError):  # a text may be longer than a name can be
        pattern = "*" in text and glob(text, recursive=True)  # noqa: PTH207 -- any pattern
        return bool(pattern) or Path(text).exists()
    return False


def to_path(path: str | Path) -> Path:
    """Returns the path that a user gives, as text or as a path that was made of a URL."""
    if isinstance(path, RemotePath):
        return path
    text = _COLLAPSED.sub(r"\1://", str(path)) if isinstance(path, Path) else path
    if not is_url(text):
        return Path(path)
    protocol, _, rest = text.partition("://")
    local = protocol.lower() in ("file", "local")
    return Path(rest) if local else RemotePath(_checked(protocol.lower(), rest))


def on_disk(text: str) -> Path:
    """Returns a path to write to; raises UserError if it is a URL."""
    path = to_path(text)
    if isinstance(path, RemotePath):
        raise UserError(f"{path}: this is written to this machine's disk only; give a path")
    return path


def _checked(protocol: str, rest: str) -> str:
    """Returns a URL in the one form that is written to files; no message repeats a secret."""
    authority, _, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    web, shown = is_web(f"{protocol}://"), f"{protocol}://{'…@' if user else ''}{host}/…"
    path, mark, query = path.partition("?") if web else (path, "", "")
    name, colon, password = user.partition(":")
    secrets = [password or ("" if colon or not web else name)]  # a name alone: as tokens stand
    secrets += [value for field, value in parse_qsl(query) if _SIGNS.fullmatch(field)]
    if any(secret and not VARIABLE.fullmatch(secret) for secret in secrets):
        raise UserError(
            f"{shown}: a secret stands in this URL, and URLs are written to a run's files: put it"
            " into an environment variable, and that into the URL, in single quotes:"
            f" '{protocol}://user:$SECRET@host/…', '{protocol}://host/…?$QUERY'"
        )
    if "::" in rest:
        raise UserError(f"{shown}: chains of URLs (::) are not taken; unpack the file first")
    if not host or "//" in f"/{path}":
        raise UserError(f"{protocol}://{rest}: its host, or a part between slashes, is empty")
    query = query.replace("/", "%2F")  # which means the same there, and is no part of a path
    return f"{protocol}://{authority}/{path.strip('/')}".rstrip("/") + mark + query


def is_collection(paths: Sequence[Path]) -> bool:
    """Says whether paths are more than one file: several, a folder, a pattern or an archive."""
    [first, *more] = paths
    if more or first.suffix.lower() == ".zip" or isinstance(first, RemotePath):
        return bool(more) or first.suffix.lower() == ".zip" or first.is_dir()
    return first.is_dir() or (has_magic(str(first)) and not first.exists())
