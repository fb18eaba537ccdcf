"""What is kept between runs: content-addressed files, one an entry.

    LEPORELLO_CACHE/entries/v1/KIND/ab/KEY.safetensors

KEY is the hash of the entry's recipe: everything that it was made from, as JSON, which stands in
the file too. A file holds arrays and JSON, written by safetensors; nothing in it is ever run.
It is written beside its place and renamed into it, so any number of processes may share a cache,
and it has a checksum over all of its bytes.

Plug-in classes that declare no `depends_on`, and whose results are reused, get one line each.
Workers only collect the names. The process that a user started prints them, each name once.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from leporello.cache.dependencies import UNDECLARED
from leporello.cache.entry import (
    PARTIAL,
    DamagedEntryError,
    pack,
    raise_interruption,
    read,
    read_key,
    write,
)
from leporello.cache.fingerprint import fingerprint
from leporello.core.calls.memory import canonical
from leporello.core.records import JSON, Index

_SUFFIX = ".safetensors"
_FILES = {"layouts": "*.jsonl", "ocr": "*.json"}  # what loaders and tasks keep, a file each
_MODELS = "models"
# Copies of what is at URLs: files, runs that were looked at, files of the hub; of compressed files.
_REMOTE = ("files", "views", "hub", "unpacked")
_HOUR = 3600.0

_log = logging.getLogger("leporello")


_collected: dict[str, None] = {}
_printed: set[str] = set()


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One thing that is kept.

    Attributes:
        kind: `tokens`, `chunks`, `index`, `outputs`; `layouts` for where the documents of a task
            stand; `ocr` for what was read of a page's picture; `models` for a folder of converted
            weights; `files`, `views` and `hub` for a copy of a file, of a run, or of a data set's
            file, that is at a URL; `unpacked` for that of a compressed file.
        path: Its file, or its folder.
        size: Size in bytes.
        last_use: Seconds since 1970, to the hour.
    """

    kind: str
    path: Path
    size: int
    last_use: float

    def recipe(self) -> dict[str, JSON] | None:
        """Returns what it was made from, read from the file; None for models and damaged files."""
        return read_key(self.path)


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of entries, shared by all runs; a `CacheProtocol`.

    Attributes:
        root: The folder, made when something is kept; `leporello.models.locate.cache_directory()`.
    """

    root: Path

    def get(self, kind: str, key: Mapping[str, JSON]) -> Index | None:
        """Returns what was made by this recipe, or None if it is not kept.

        A damaged entry is told, removed, and not returned.

        Returns:
            Named arrays, which cannot be written to and are mapped into memory if they are large,
            and plain values.
        """
        text = canonical(key)
        path = self._path(kind, text)
        try:
            value, last_use = read(path, text)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise_interruption(error)
            _tell_once(f"the cache in {self.root} cannot be read ({error.strerror})")
            return None
        except DamagedEntryError as error:
            _log.warning("%s is damaged (%s); it is removed, and made again", path, error)
            with suppress(OSError):
                path.unlink()
            return None
        _touch(path, last_use)
        collect_recipe({**key})
        return value

    def put(self, kind: str, key: Mapping[str, JSON], value: Index) -> bool:
        """Keeps what was made by this recipe.

        What fails to be written is told once a process, and not kept.

        Args:
            kind: Kind of entry, in a few words that make a folder's name.
            key: Values that the entry depends on, all of them.
            value: A dict of names to NumPy arrays of plain numbers or truth values, and to JSON
                of Python's own types. Nothing else is kept: no tuple, no NumPy scalar, no subclass
                of these, since it would not come back as it was.

        Returns:
            Whether it is kept.
        """
        text = canonical(key)
        if (content := pack(text, value)) is None:
            return False
        try:
            write(self._path(kind, text), content)
        except OSError as error:
            raise_interruption(error)
            _tell_once(
                f"the cache in {self.root} cannot be written ({error.strerror});"
                " what is worked out is not kept for the next run"
            )
            return False
        return True

    def fingerprint(
        self, stage: object, without: Collection[str] = ()
    ) -> Mapping[str, JSON] | None:
        """Returns what a stage's results depend on besides some parameters; None if unknown."""
        return fingerprint(stage, without)

    def holds(self, kind: str, key: Mapping[str, JSON]) -> bool:
        """Says whether there is an entry of this recipe, without reading it."""
        return self._path(kind, canonical(key)).is_file()

    def entries(self) -> Iterator[CacheEntry]:
        """Yields everything that is kept, in no order; models and copies too."""
        for path in (self.root / "entries").glob(f"v*/*/*/*{_SUFFIX}"):
            yield from _entry(path.parent.parent.name, path)
        for kind, pattern in _FILES.items():
            for path in (self.root / kind).glob(pattern):
                yield from _entry(kind, path)
        for path in (self.root / _MODELS).glob("[!.]*/"):
            yield from _entry(_MODELS, path)
        for kind in _REMOTE:
            for path in (self.root / kind).glob("[!.]*/[!.]*/"):
                yield from _entry(kind, path)

    def collect(self, keep_bytes: int) -> list[CacheEntry]:
        """Removes what was not used for longest, until no more than so many bytes are kept.

        Models go last. What processes that were killed left half written goes in any case.

        Returns:
            What was removed.
        """
        _remove_partial(self.root)
        entries = sorted(self.entries(), key=lambda e: (e.kind == _MODELS, e.last_use))
        surplus = sum(entry.size for entry in entries) - keep_bytes
        removed: list[CacheEntry] = []
        for entry in entries:
            if surplus <= 0:
                break
            if _remove(entry.path):
                surplus -= entry.size
                removed.append(entry)
        return removed

    def _path(self, kind: str, text: str) -> Path:
        key = hashlib.sha256(text.encode()).hexdigest()
        return self.root / f"entries/v1/{kind}/{key[:2]}/{key}{_SUFFIX}"


def _touch(path: Path, last_use: float) -> None:
    """Notes that an entry was used, by the hour, so that reading seldom writes."""
    if time.time() - last_use > _HOUR:
        with suppress(OSError):  # a folder that may not be written to
            os.utime(path)


@cache
def _tell_once(message: str) -> None:
    _log.warning("%s", message)


def _entry(kind: str, path: Path) -> Iterator[CacheEntry]:
    """Yields the entry, unless another process has removed it."""
    with suppress(FileNotFoundError):
        inner = [file.stat() for file in path.rglob("*")] if path.is_dir() else []
        status = path.stat()
        size = sum(file.st_size for file in inner) if inner else status.st_size
        yield CacheEntry(kind, path, size, status.st_mtime)


def _remove(path: Path) -> bool:
    """Removes a file; or a folder, which goes out of sight at once."""
    try:
        if path.is_dir():
            hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
            path.replace(hidden)
            shutil.rmtree(hidden)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        _tell_once(f"{path.parent} cannot be cleared ({error.strerror})")
        return False
    return True


def _remove_partial(root: Path) -> None:
    """Removes what is half written and older than an hour: no process is at it any more."""
    entries, models = (root / "entries").glob(f"v*/*/*/*{PARTIAL}"), root / _MODELS
    remote = (partial for kind in _REMOTE for partial in (root / kind).glob("*/*.part*"))
    layouts = (root / "layouts").glob(f"*{PARTIAL}")
    for path in [*entries, *layouts, *models.glob(f".*{PARTIAL}"), *remote]:
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _HOUR:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def collect_reuse(names: Iterable[str]) -> None:
    """Collects names of classes whose results are reused."""
    _collected.update(dict.fromkeys(names))


def collect_recipe(recipe: JSON) -> None:
    """Collects the names in the recipe of an entry that the cache has returned."""
    collect_reuse(_names(recipe))


def collected() -> tuple[str, ...]:
    """Returns the names that were collected in this process."""
    return tuple(_collected)


def warn_of_reuse() -> None:
    """Warns of each collected class once per process."""
    for name in _collected.keys() - _printed:
        _printed.add(name)
        _log.warning(
            "%s does not declare depends_on: its results are reused, even if a file or variable"
            ' that it reads has changed; list these, depends_on = ("words.txt", "env:LANGUAGE"),'
            " or declare that there are none, depends_on = ()",
            name,
        )


def _names(recipe: JSON) -> Iterator[str]:
    if isinstance(recipe, Mapping):
        for key, value in recipe.items():
            if key == UNDECLARED and isinstance(value, Sequence):
                yield from map(str, value)
            else:
                yield from _names(value)
    elif isinstance(recipe, list):
        for value in recipe:
            yield from _names(value)
