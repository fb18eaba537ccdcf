"""Disk cache shared by all runs: content-addressed files, one per entry.

    LEPORELLO_CACHE/entries/v1/KIND/ab/KEY.safetensors

KEY is the hash of the entry's recipe: JSON of everything that the entry depends on. The file
contains the recipe too. Files contain arrays and JSON in the safetensors format, never code.
A file is written under a temporary name and renamed, so that any number of processes can share a
cache. A checksum covers all of its bytes.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from leporello.cache import dependencies
from leporello.cache.entry import (
    PARTIAL,
    DamagedEntryError,
    pack,
    raise_interruption,
    read,
    write,
)
from leporello.core.calls.memory import canonical
from leporello.core.records import JSON, Index

_SUFFIX = ".safetensors"
_MODELS = "models"
# Copies of files at URLs, of runs that were viewed, of files of the hub and of compressed files.
_REMOTE = ("files", "views", "hub", "unpacked")
# Entries that are not in `entries`, by kind; `layouts` and `ocr` are files of tasks and loaders.
_PATTERNS = {
    "layouts": "*.jsonl", "ocr": "*.json", _MODELS: "[!.]*/",
    **dict.fromkeys(_REMOTE, "[!.]*/[!.]*/"),
}  # fmt: skip
# Also the age at which a partial file counts as left behind: no entry takes an hour to write.
_HOUR = 3600.0

_log = logging.getLogger("leporello")


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """A file or folder in the cache."""

    # `tokens`, `chunks`, `index`, `outputs`; `layouts` for the places of a task's documents, and
    # the texts of benchmarks; `ocr` for text recognised on a page image; `models` for a folder of
    # converted weights; `files`, `views` and `hub` for a local copy of a remote file, of a remote
    # run, or of a data set's file; `unpacked` for a decompressed file.
    kind: str
    path: Path  # file or folder of the entry
    size: int  # size in bytes
    last_use: float  # seconds since 1970, to the hour


@dataclass(frozen=True, slots=True)
class Cache:
    """Folder of entries that all runs share; a `CacheProtocol`."""

    root: Path  # created when the first entry is stored

    def get(self, kind: str, key: Mapping[str, JSON]) -> Index | None:
        """Returns the plain values and read-only arrays under a recipe, or None.

        A damaged entry is reported and removed.
        """
        text = canonical(key)
        path = self._path(kind, text)
        try:
            value, last_use = read(path, text)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise_interruption(error)
            _warn_once(f"the cache in {self.root} cannot be read ({error.strerror})")
            return None
        except DamagedEntryError as error:
            _log.warning("%s is damaged (%s); it is removed and computed again", path, error)
            with suppress(OSError):
                # Only this entry is lost; damage to a database would cost all (decision 9).
                path.unlink()
            return None
        if time.time() - last_use > _HOUR:  # rarely, to save writes
            with suppress(OSError):  # the folder may be read-only
                os.utime(path)
        return value

    def put(self, kind: str, key: Mapping[str, JSON], value: Index) -> bool:
        """Stores named arrays and JSON under a recipe; returns whether the value is stored.

        A failure to write is reported once per process. Values that reading would not restore
        exactly, such as tuples, are not stored.
        """
        text = canonical(key)
        if (content := pack(text, value)) is None:
            return False
        try:
            write(self._path(kind, text), content)
        except OSError as error:
            raise_interruption(error)
            _warn_once(
                f"the cache in {self.root} cannot be written ({error.strerror});"
                " results are not stored for the next run"
            )
            return False
        return True

    fingerprint = staticmethod(dependencies.fingerprint)

    def entries(self) -> Iterator[CacheEntry]:
        """Yields all entries in no particular order, including models and copies."""
        for path in (self.root / "entries").glob(f"v*/*/*/*{_SUFFIX}"):
            yield from _entry(path.parent.parent.name, path)
        for kind, pattern in _PATTERNS.items():
            for path in (self.root / kind).glob(pattern):
                yield from _entry(kind, path)

    def surplus(self, keep_bytes: int) -> list[CacheEntry]:
        """Returns the least recently used entries, without which the cache has `keep_bytes`."""
        # Models last, since each use needs them; converting one takes a minute.
        entries = sorted(self.entries(), key=lambda e: (e.kind == _MODELS, e.last_use))
        surplus = sum(entry.size for entry in entries) - keep_bytes
        chosen: list[CacheEntry] = []
        for entry in entries:
            if surplus <= 0:
                break
            surplus -= entry.size
            chosen.append(entry)
        return chosen

    def remove(self, entries: Iterable[CacheEntry]) -> list[CacheEntry]:
        """Removes entries, and partial files of killed processes; returns the removed entries."""
        _remove_partial(self.root)
        return [entry for entry in entries if _remove(entry.path)]

    def _path(self, kind: str, text: str) -> Path:
        key = hashlib.sha256(text.encode()).hexdigest()
        # 256 folders: some file systems are slow with a million files in one.
        return self.root / f"entries/v1/{kind}/{key[:2]}/{key}{_SUFFIX}"


@cache
def _warn_once(message: str) -> None:
    _log.warning("%s", message)


def _entry(kind: str, path: Path) -> Iterator[CacheEntry]:
    """Yields the entry, unless another process has removed it."""
    with suppress(FileNotFoundError):
        inner = [file.stat() for file in path.rglob("*")] if path.is_dir() else []
        status = path.stat()
        size = sum(file.st_size for file in inner) if inner else status.st_size
        yield CacheEntry(kind, path, size, status.st_mtime)


def _remove(path: Path) -> bool:
    """Removes a path; renames folders first, so that they vanish at once."""
    try:
        if path.is_dir():
            hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
            path.replace(hidden)
            shutil.rmtree(hidden)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        _warn_once(f"{path.parent} cannot be cleared ({error.strerror})")
        return False
    return True


def _remove_partial(root: Path) -> None:
    """Removes partial files older than an hour: no process can still be writing them."""
    entries, models = (root / "entries").glob(f"v*/*/*/*{PARTIAL}"), root / _MODELS
    remote = (partial for kind in _REMOTE for partial in (root / kind).glob("*/*.part*"))
    layouts = (root / "layouts").glob(f"*{PARTIAL}")
    for path in [*entries, *layouts, *models.glob(f".*{PARTIAL}"), *remote]:
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _HOUR:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
