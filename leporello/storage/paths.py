"""Paths at URLs: parses and checks URLs, and opens their local copies."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from errno import ELOOP
from glob import glob, has_magic
from os import PathLike
from pathlib import Path, PosixPath
from typing import IO, Any, Self
from urllib.parse import parse_qsl

from leporello.core.errors import UserError
from leporello.core.secrets import VARIABLE
from leporello.storage.location import Location, MissingError, is_web

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# A plug-in's or config's `Path("s3://b/x")` is `s3:/b/x`; it is repaired instead of refused.
_COLLAPSED = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")  # `Path` removes one slash
# Query fields that contain secrets.
_SIGNS = re.compile(r"(?i)(?:.*[_-])?((api)?key|token|sig|signature|credential|password|secret)")


class RemotePath(PosixPath):
    """A file or folder at a URL, created by `to_path`, for all code that takes a path.

    Its text is the URL; its path for the operating system is this machine's copy. Each access
    checks the version on the server.
    """

    def __str__(self) -> str:
        protocol, *names = self.parts
        return f"{protocol}//{'/'.join(names)}"

    def __truediv__(self, other: str | PathLike[str]) -> Path:  # type: ignore[override]  # may be another server's
        if is_url(text := str(other)):
            return to_path(text)
        if text.startswith(("/", "~")):
            raise UserError(
                f"{text}: is a path on this machine, but {self} refers to it; use a URL"
            )
        host, *folders = self.parts[1:]
        path = posixpath.normpath(f"/{'/'.join(folders)}/{text}")  # stays below the host
        return RemotePath(f"{self.parts[0]}//{host}{path}")

    @property
    def name(self) -> str:
        """Last part of the path; without the query of a web address."""
        return super().name.partition("?")[0] if is_web(str(self)) else super().name

    def __fspath__(self) -> str:
        """Returns the path of this machine's copy, downloaded if the version has changed."""
        return str(Location(str(self)).copy())

    def exists(self) -> bool:
        """Returns whether the URL exists; raises UserError if the server does not answer."""
        return self._type() is not None

    def is_dir(self) -> bool:
        """Returns whether the URL is a folder; always False for web servers."""
        return self._type() == "directory"

    def iterdir(self) -> Iterator[Self]:  # type: ignore[override]  # Path's is a generator
        """Yields the entries of a folder, sorted by name."""
        # Object stores have no folders, only names with slashes.
        for name in sorted({name.split("/")[0] for name in Location(str(self)).files()}):
            yield type(self)(f"{self}/{name}")

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:  # type: ignore[override]  # noqa: ANN401 -- as Path's
        """Opens the local copy, for reading only."""
        if not {*"wax+"}.isdisjoint(mode):
            raise UserError(f"{self}: cannot be written to; give a path on this machine")
        return super().open(mode, *args, **kwargs)

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002, FBT -- as Path's
        """Returns the path itself, since URLs are absolute."""
        return self

    absolute = expanduser = resolve

    def _type(self) -> str | None:
        try:
            return str(Location(str(self)).info()["type"])
        except MissingError:
            return None


def is_url(text: str) -> bool:
    """Returns whether a text is a URL rather than a path."""
    return _URL.match(text) is not None


def is_there(text: str) -> bool:
    """Returns whether a text is a URL, an existing file or folder, or a pattern with matches."""
    if not text or is_url(text):
        return bool(text)
    with suppress(OSError, ValueError):  # the text may be too long for a path
        pattern = "*" in text and glob(text, recursive=True)  # noqa: PTH207 -- any pattern
        return bool(pattern) or Path(text).exists()
    return False


def to_path(path: str | Path) -> Path:
    """Returns a path or URL as a path; rejects URLs with a secret, and circles of links."""
    if isinstance(path, RemotePath):
        return path
    text = _COLLAPSED.sub(r"\1://", str(path)) if isinstance(path, Path) else path
    if not is_url(text):
        _check_links(text)
        return Path(path)
    protocol, _, address = text.partition("://")
    # Without a copy: the file is on this machine already.
    is_local = protocol.lower() in ("file", "local")
    return Path(address) if is_local else RemotePath(_checked(protocol.lower(), address))


def on_disk(text: str) -> Path:
    """Returns a path for output; raises UserError if it is a URL."""
    path = to_path(text)
    if isinstance(path, RemotePath):
        raise UserError(f"{path}: this output cannot be written to a URL; give a path")
    return path


def _check_links(path: str) -> None:
    """Raises if links of a path lead to each other, on which `Path.resolve` fails."""
    try:
        Path(path).stat()
    except OSError as error:
        if error.errno == ELOOP:
            raise UserError(f"{path}: is a link that leads to itself; name another path") from None
    except ValueError:  # the name contains a NUL, which opening it reports
        pass


def _checked(protocol: str, address: str) -> str:
    """Returns a URL in its normal form for files; rejects secrets without repeating them."""
    authority, _, path = address.partition("/")
    user, _, host = authority.rpartition("@")
    web, shown = is_web(f"{protocol}://"), f"{protocol}://{'…@' if user else ''}{host}/…"
    path, mark, query = path.partition("?") if web else (path, "", "")
    name, colon, password = user.partition(":")
    # On the web `https://TOKEN@host` is a login; in `s3://user@bucket` a name is harmless.
    secrets = [password or ("" if colon or not web else name)]  # a name alone may be a token
    secrets += [value for field, value in parse_qsl(query) if _SIGNS.fullmatch(field)]
    if any(secret and not VARIABLE.fullmatch(secret) for secret in secrets):
        raise UserError(
            f"{shown}: the URL contains a secret, and runs store URLs in files; put the secret into"
            " an environment variable and use the variable in the URL, in single quotes:"
            f" '{protocol}://user:$SECRET@host/…', '{protocol}://host/…?$QUERY'"
        )
    # fsspec would unpack it by streams, while readers need a file that they can seek in.
    if "::" in address:
        raise UserError(f"{shown}: chains of URLs (::) are not supported; unpack the file first")
    if not host or "//" in f"/{path}":
        raise UserError(f"{protocol}://{address}: its host, or a part between slashes, is empty")
    query = query.replace("/", "%2F")  # equivalent in a query, and not a separator of the path
    return f"{protocol}://{authority}/{path.strip('/')}".rstrip("/") + mark + query


def is_collection(paths: Sequence[Path]) -> bool:
    """Returns whether paths denote a collection: several files, a folder, pattern or archive."""
    [first, *more] = paths
    if more or first.suffix.lower() == ".zip" or first.is_dir():
        return True
    return not isinstance(first, RemotePath) and has_magic(str(first)) and not first.exists()
