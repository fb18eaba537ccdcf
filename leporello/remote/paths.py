"""A URL where a path is expected."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path, PosixPath
from typing import IO, Any, NoReturn

from leporello.errors import UserError
from leporello.remote.addresses import checked, is_url, is_web, protocol_of

__all__ = ["RemotePath", "on_disk", "place"]

_COLLAPSED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])")  # as `Path` writes a URL
_HERE = ("file", "local")


class RemotePath(PosixPath):
    """A file or folder at a URL, made by `place`; what reads it, reads this machine's copy of it.

    So whatever takes a path takes a URL, a plug-in's task too. As text it is the URL; to the
    operating system it is the copy. The server is asked each time that it is opened, or looked for.
    """

    def __str__(self) -> str:
        protocol, *rest = self.parts
        return f"{protocol}//{'/'.join(rest)}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __truediv__(self, other: str | PathLike[str]) -> Path:  # type: ignore[override]  # may be another server's
        if is_url(text := str(other)):
            return place(text)
        if text.startswith(("/", "~")):
            raise UserError(f"{text}: is a path on this machine, and it is named at {self}")
        host, *folders = self.parts[1:]
        below = posixpath.normpath(f"/{'/'.join(folders)}/{text}")  # never above the host
        return RemotePath(f"{self.parts[0]}//{host}{below}")

    @property
    def name(self) -> str:
        """The last part; of a web address without its query."""
        name = super().name
        return name.partition("?")[0] if is_web(str(self)) else name

    def __fspath__(self) -> str:
        """Returns where this machine's copy lies, fetched if there is none, or of another version.

        Raises:
            UserError: The file cannot be had.
        """
        from leporello.remote.copies import fetched

        return str(fetched(str(self)))

    def exists(self) -> bool:
        """Asks the server.

        Raises:
            UserError: It does not answer.
        """
        from leporello.remote.stores import store

        return store(str(self)).exists()

    def is_file(self) -> bool:
        """As `exists`; of folders that are nothing but parts of names it is false."""
        return self.exists() and not self.is_dir()

    def is_dir(self) -> bool:
        """Asks the server; web servers have no folders."""
        from leporello.remote.stores import store

        return store(str(self)).is_folder()

    def iterdir(self) -> Iterator[RemotePath]:  # type: ignore[override]  # a generator, there
        """Yields what stands in a folder, in the order of names."""
        from leporello.remote.stores import store

        for name in store(str(self)).names():
            yield RemotePath(f"{self}/{name}")

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:  # type: ignore[override]  # noqa: ANN401 -- as Path's
        """Opens the copy, for reading only."""
        if not {*"wax+"}.isdisjoint(mode):
            self.mkdir()
        return super().open(mode, *args, **kwargs)

    def mkdir(self, *_: object, **__: object) -> NoReturn:
        """Refuses: only runs are written to URLs.

        Raises:
            UserError: Always.
        """
        raise UserError(f"{self}: cannot be written to; give a path on this machine")

    def resolve(self, strict: bool = False) -> RemotePath:  # noqa: ARG002, FBT -- as Path's
        """Returns itself: a URL counts from nowhere."""
        return self

    def absolute(self) -> RemotePath:
        """Returns itself."""
        return self

    def expanduser(self) -> RemotePath:
        """Returns itself."""
        return self


def place(given: str | Path) -> Path:
    """Returns the path that a user gives, as text or as a path that was made of a URL.

    Raises:
        UserError: A URL that is not taken; see `addresses.checked`.
    """
    if isinstance(given, RemotePath):
        return given
    text = _COLLAPSED.sub(r"\1://", str(given)) if isinstance(given, Path) else given
    if not is_url(text):
        return Path(given)
    if protocol_of(text) in _HERE:
        return Path(text.partition("://")[2])
    return RemotePath(checked(text))


def on_disk(text: str) -> Path:
    """Returns a path to write to.

    Raises:
        UserError: It is a URL.
    """
    path = place(text)
    if isinstance(path, RemotePath):
        raise UserError(
            f"{path}: is written to this machine's disk only; give a path, and copy what lies there"
        )
    return path
