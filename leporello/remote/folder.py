"""A run's folder in a store: its files by name, those of Leporello's own bookkeeping left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from leporello.errors import UserError
from leporello.remote.addresses import is_web
from leporello.remote.stores import MissingError, file_system, told, version_of

__all__ = ["LOCK", "Folder"]

LOCK = ".lock.json"
_BLOCK = 1 << 23  # bytes
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder at a URL. All its methods raise UserError where the store refuses or is silent.

    Attributes:
        url: As it is shown.
        system: fsspec's.
        path: There.
    """

    url: str
    system: Any
    path: str

    @classmethod
    def at(cls, url: str) -> Folder:
        """Returns the folder; nothing is asked yet.

        Raises:
            UserError: It is a web server's, or `stores.file_system` refuses.
        """
        if is_web(url):
            raise UserError(
                f"{url}: web servers are only read from; a run lies on a disk or in an object store"
            )
        return cls(url, *file_system(url))

    def versions(self) -> dict[str, str]:
        """Returns what is there, the lock left out: each name with what differs when it does."""
        root = str(self.path).rstrip("/") + "/"
        try:
            found = self._do("", lambda _: self.system.find(self.path, detail=True))
        except MissingError:
            return {}
        files = {str(path): info for path, info in found.items() if info.get("type") == "file"}
        names = {path.removeprefix(root): version_of(info) for path, info in files.items()}
        return {name: version for name, version in names.items() if name not in ("", LOCK)}

    def version(self, name: str) -> str:
        """Returns what differs when the file does."""
        return self._do(name, lambda path: version_of(self.system.info(path)))

    def get(self, name: str, to: Path) -> None:
        """Copies a file from there, beside its place first."""
        to.parent.mkdir(parents=True, exist_ok=True)
        part = to.with_name(f".{to.name}.part")
        self._do(name, lambda path: self.system.get_file(path, str(part)))
        part.replace(to)

    def put(self, file: Path, name: str) -> None:
        """Copies a file there."""
        self._into(name, lambda path: self.system.put_file(str(file), path))

    def read(self, name: str) -> bytes | None:
        """Returns what a small file holds; None if there is none."""
        try:
            return bytes(self._do(name, self.system.cat_file))
        except MissingError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Writes a small file."""
        self._into(name, lambda path: self.system.pipe_file(path, content))

    def create(self, name: str, content: bytes) -> None:
        """Writes a small file if there is none; leaves another's alone."""

        def make(path: str) -> None:
            try:
                self.system.pipe_file(path, content, mode="create")
            except FileExistsError:
                return

        self._into(name, make)

    def remove(self, name: str) -> None:
        """Removes a file; that it is gone already is no fault."""
        try:
            self._do(name, self.system.rm_file)
        except MissingError:
            return

    def _do(self, name: str, action: Callable[[str], Given]) -> Given:
        path = f"{str(self.path).rstrip('/')}/{name}" if name else str(self.path)
        with told(f"{self.url}/{name}" if name else self.url):
            self.system.invalidate_cache(path)  # what it was told before may be over
            return action(path)

    def _into(self, name: str, action: Callable[[str], None]) -> None:
        """Writes; where folders must be there first, they are made, a bucket is not."""
        try:
            self._do(name, action)
        except MissingError:
            whole = str(self.path)
            rooted = whole[: len(whole) - len(whole.lstrip("/"))]
            bucket = rooted + whole.lstrip("/").partition("/")[0]
            if not self._do("", lambda _: self.system.exists(bucket)):
                raise UserError(f"{self.url}: there is no {bucket}; make it first") from None
            self._do(name, lambda path: self.system.makedirs(_parent(path), exist_ok=True))
            self._do(name, action)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
