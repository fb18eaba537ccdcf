"""This machine's copies of files at URLs: fetched once, and again if they change there.

    LEPORELLO_CACHE/files/URL/VERSION/NAME

URL and VERSION are hashes, so that another version never touches a copy that is being read.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from leporello.errors import UserError
from leporello.models import cache_directory
from leporello.remote.paths import RemotePath
from leporello.remote.stores import Facts, Store, UnreachableError, store

__all__ = ["fetched", "locked", "short_hash"]

_HOUR = 3600.0
_UNSAFE = re.compile(r"^\.+|[^\w.,=@+-]+")
_LONGEST = 100  # characters of a file's name
_log = logging.getLogger("leporello")


def fetched(url: str) -> Path:
    """Returns a file that holds what is at a URL now.

    Raises:
        UserError: It cannot be had: there is no such file, access is refused, the server does not
            answer, the connection broke off, there is no room. A copy is never taken instead.
    """
    folder = cache_directory() / "files" / short_hash(url)
    source = store(url)
    try:
        facts = source.facts()
    except UnreachableError as error:
        raise UserError(f"{error}{_older(folder)}") from error
    name = _UNSAFE.sub("-", RemotePath(url).name)[-_LONGEST:]
    if facts.version and (copy := folder / facts.version / name).exists():
        _touch(copy.parent)
        return copy
    with _room(url), locked(folder, f"{url}: another process is fetching it; waiting"):
        return _fetch(url, source, facts, folder, name)


def short_hash(text: str) -> str:
    """Returns a name for a folder."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextmanager
def locked(folder: Path, waiting: str) -> Iterator[None]:
    """Makes a folder, and keeps other processes out of it; tells if that means to wait."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=1)
    except Timeout:
        _log.info(waiting)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _fetch(url: str, source: Store, facts: Facts, folder: Path, name: str) -> Path:
    """Fetches a file beside its place, and renames it there."""
    copy = folder / facts.version / name
    if facts.version and copy.exists():  # another process did, meanwhile
        return copy
    part = folder / f"{facts.version or secrets.token_hex(4)}.part"
    size = "of unknown size" if facts.size is None else f"{facts.size / 1e6:,.1f} MB"
    _log.info("fetching %s (%s)", url, size)
    _download(url, source, facts, part)
    if source.facts() != facts:
        part.unlink()
        raise UserError(f"{url}: has changed while it was fetched; run the same command again")
    if not facts.version:  # the server does not say: then the content does
        with part.open("rb") as file:
            copy = folder / hashlib.file_digest(file, "sha256").hexdigest()[:16] / name
    copy.parent.mkdir(exist_ok=True)
    return part.replace(copy)


def _download(url: str, source: Store, facts: Facts, part: Path) -> None:
    """Appends to a file what it lacks."""
    begun = part.stat().st_size if facts.version and part.exists() else 0
    if facts.size is not None and begun >= facts.size:
        begun = 0
    if (needed := (facts.size or 0) - begun) > (free := shutil.disk_usage(part.parent).free):
        raise UserError(
            f"{url}: {needed / 1e6:,.0f} MB are to be fetched, and {part.parent} has"
            f" {free / 1e6:,.0f} MB; make room, or name another place with LEPORELLO_CACHE"
        )
    with part.open("ab") as file:
        try:
            with source.reading(begun) as (begin, blocks):
                file.truncate(begin)
                for block in blocks:
                    file.write(block)
        except UnreachableError as error:
            got = file.tell()
            raise UserError(f"{error}; {_cut_off(got, facts)}") from error.__cause__
        if facts.size not in (None, got := file.tell()):
            raise UserError(f"{url}: {_cut_off(got, facts)}")


def _cut_off(got: int, facts: Facts) -> str:
    total = "an unknown number of" if facts.size is None else f"{facts.size:,}"
    return f"it broke off after {got:,} of {total} bytes; the same command goes on from there"


def _older(folder: Path) -> str:
    """Returns where a copy is that was fetched before, for the person to decide."""
    copies = [file for file in folder.glob("*/*") if not file.name.startswith(".")]
    if not copies:
        return ""
    last = max(copies, key=lambda file: file.stat().st_mtime)
    when = datetime.fromtimestamp(last.stat().st_mtime).astimezone()
    return f". A copy of {when:%Y-%m-%d %H:%M} lies at {last}: name that to read it as it was then"


@contextmanager
def _room(url: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        told = error.strerror or type(error).__name__
        raise UserError(f"{url}: cannot be written to {cache_directory()}: {told}") from error


def _touch(folder: Path) -> None:
    """Notes that a copy was used, by the hour, for `cache gc`."""
    with suppress(OSError):
        if time.time() - folder.stat().st_mtime > _HOUR:
            os.utime(folder)
