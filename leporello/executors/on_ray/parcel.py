"""The sources of plug-ins, for machines of a cluster that do not have them."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from leporello.models import cache_directory
from leporello.sources import is_own, sources
from leporello.traces import MOVED

__all__ = ["Parcel", "parcel"]


@dataclass(frozen=True)
class Parcel:
    """Local modules that are not Leporello's own.

    Attributes:
        files: What each holds, by its path on the machine of the driver.
        roots: From which folder there each is imported.
    """

    files: Mapping[str, bytes]
    roots: Mapping[str, str]

    def unpack(self) -> None:
        """Puts what this machine does not have into its cache, for this process to import."""
        for path, content in self.files.items():
            if not _has(path, content):
                self._put(path, content)

    def _put(self, path: str, content: bytes) -> None:
        root = self.roots[path]
        folder = cache_directory() / "sources" / self._digest() / _short(root.encode())
        target = folder / Path(path).relative_to(root)
        if not _has(str(target), content):
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}")
            partial.write_bytes(content)
            partial.replace(target)  # other actors do the same
        MOVED[path] = str(target)
        if str(folder) not in sys.path:
            sys.path.append(str(folder))

    def _digest(self) -> str:
        """Returns a hash of all files: those of another run may differ."""
        hashes = sorted((path, _short(content)) for path, content in self.files.items())
        return _short(repr(hashes).encode())


def parcel(classes: Iterable[type]) -> Parcel:
    """Returns the local modules that classes depend on."""
    files: dict[str, bytes] = {}
    roots: dict[str, str] = {}
    for cls in classes:
        for module, path in sources(cls).files.items():
            if is_own(module):
                continue
            files[str(path)] = path.read_bytes()
            roots[str(path)] = str(_root(module, path))
    return Parcel(files, roots)


def _root(module: str, path: Path) -> Path:
    """Returns the folder from which a module is imported; a plug-in's file lies there itself."""
    if module.endswith(".py"):
        return path.parent
    return path.parents[module.count(".") + (path.name == "__init__.py")]


def _has(path: str, content: bytes) -> bool:
    try:
        return Path(path).read_bytes() == content
    except OSError:
        return False


def _short(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]
