"""Runs at URLs: synchronises a local copy with the URL, or downloads all files to view them.

The lock of a run is a small file, refreshed once per minute. S3 and GCS have exclusive creation of
files, so if two machines start at once, only one gets the lock. On other stores, and when a stale
lock is replaced, the last writer wins; the other process notices that its token was replaced before
it writes anything else.
"""

import json
import logging
import os
import platform
import secrets
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Self

from filelock import FileLock

from leporello.core.errors import UserError
from leporello.core.files import append_rows, appended_rows, locked
from leporello.storage.location import (
    LOCK,
    PARTIAL,
    Location,
    MissingError,
    is_web,
    local_copy,
    version_of,
)
from leporello.storage.paths import RemotePath, to_path

# A tenth of the time until a lock is stale, so nine refreshes may fail.
_EVERY = 60.0  # seconds
_STALE = 600.0  # seconds without an update; also bounds how far clocks of machines may differ
# Recorded in the ledger after each group, so a killed download repeats at most this many files.
_AT_ONCE = 256  # files
_MANIFEST, _JOURNAL = "manifest.json", "-journal"
_LEDGER = ".remote.jsonl"  # per file of a copy: its version when downloaded, or size when uploaded
_log = logging.getLogger("leporello")


class LostError(UserError):
    """Another process has taken over the run."""


@dataclass
class RemoteRun:
    """A run at a URL with a local copy; threads, processes and machines may upload concurrently."""

    url: str
    directory: Path  # the local copy
    token: str = ""  # which the lock must have for uploads; if empty, the lock is not checked
    lost: LostError | None = None  # after another process has taken over the run

    def __post_init__(self) -> None:
        if is_web(self.url):
            raise UserError(f"{self.url}: web servers cannot store runs; use a storage service")

    @property
    def location(self) -> Location:
        """The folder at the URL."""
        return Location(self.url)

    def here(self) -> Self:
        """Returns the same run with a copy on a worker's machine."""
        return type(self)(self.url, local_copy("runs", self.url), self.token)

    def check(self) -> None:
        """Raises LostError if another process has taken over the run; called between steps."""
        if self.lost:
            raise self.lost

    def check_lock(self) -> None:
        """Raises LostError if the lock at the URL has another token."""
        row = _row(self.location.read(LOCK))
        if row.get("token") != self.token:
            reason = f"{_process(row)} holds it now" if row else "it was deleted"
            text = f"{self.url}: this process has lost the lock ({reason}) and ends, since only one"
            self.lost = LostError(f"{text} process may write")
        self.check()  # a lost lock stays lost, even if the token changes again

    def put(self, *names: str) -> None:
        """Uploads files and folders, or without names all new files; deletes those gone here."""
        location, copied = self.location, {} if names else self._copied()
        if self.token:  # a worker too must notice that another process has the run
            self.check_lock()
        gone = [n for name in names if not self._file(name).exists() for n in location.files(name)]
        location.remove(gone)
        self._record(dict.fromkeys(gone))
        files = {name: path for name, path in self._files(names or [""]) if name not in copied}
        sizes = {name: path.stat().st_size for name, path in files.items()}
        location.put(files)
        # Sizes, since asking the store for new versions takes one more request per file.
        self._record(sizes)

    def get(self, *names: str) -> None:
        """Downloads files and folders, or without names all changed files; deletes those gone."""
        location = self.location
        remote = {n: info for name in names or [""] for n, info in location.files(name).items()}
        copied = {} if names else self._copied()
        for name in copied.keys() - remote.keys():
            self._file(name).unlink(missing_ok=True)
        marks = {name: (version_of(info), info.get("size")) for name, info in remote.items()}
        stale = [
            (name, self._file(name))
            for name in sorted(remote)
            if copied.get(name, "?") not in marks[name] or not self._file(name).exists()
        ]
        for start in range(0, len(stale), _AT_ONCE):  # in parts, which the ledger records
            files = dict(stale[start : start + _AT_ONCE])
            location.get(files)
            self._record({name: marks[name][0] or marks[name][1] for name in files})

    def resume(self) -> None:
        """Downloads the run in order to resume it, and uploads files that only its copy has."""
        manifest, remote_manifest = self.directory / _MANIFEST, self.location.read(_MANIFEST)
        if remote_manifest is None and (files := self.location.files()):
            raise UserError(
                f"{self.url}: contains other files ({min(files)}, …) and no run; give another --out"
            )
        if remote_manifest is None and _MANIFEST in self._copied():
            raise UserError(
                f"{self.url}: the run was deleted there. This machine's copy of it is"
                f" {self.directory}: remove the copy to start again, or copy it back to the URL"
            )
        # Files belong to their manifest: with another one, nothing in the copy can be trusted.
        is_same = manifest.exists() and manifest.read_bytes() == remote_manifest
        if not is_same:
            shutil.rmtree(self.directory, ignore_errors=True)  # the copy belongs to another run
        self.directory.mkdir(parents=True, exist_ok=True)
        self.get()
        self.put()

    def _files(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Yields the complete files of the run under some names."""
        for top in map(self._file, names):
            for path in [top] if top.is_file() else top.rglob("*"):
                name = path.relative_to(self.directory)
                skip = any(part.endswith(PARTIAL) for part in name.parts)
                skip |= path.name.endswith(_JOURNAL)
                # A killed worker left a journal, which only SQLite on this machine can apply.
                skip |= path.with_name(path.name + _JOURNAL).exists()
                if path.is_file() and not skip and not path.name.startswith((".lock", _LEDGER)):
                    yield name.as_posix(), path

    def _file(self, name: str) -> Path:
        if ".." in PurePosixPath(name).parts or name.startswith("/"):
            raise UserError(f"{self.url}: {name} is not a valid file of a run; remove it there")
        return self.directory / name

    def _copied(self) -> dict[str, str | int]:
        marks: dict[str, str | int | None] = {}
        for row in appended_rows(self.directory / _LEDGER):
            marks |= row
        return {name: mark for name, mark in marks.items() if mark is not None}

    def _record(self, marks: Mapping[str, str | int | None]) -> None:
        append_rows(self.directory / _LEDGER, *({name: mark} for name, mark in marks.items()))


@contextmanager
def remote_run(url: str) -> Iterator[RemoteRun]:
    """Locks the run at a URL against other processes, and downloads it."""
    run = RemoteRun(url, local_copy("runs", url))
    run.directory.mkdir(parents=True, exist_ok=True)
    file = run.directory.with_name("lock.json")
    # One process at a time on this machine; the lock at the URL is for other machines.
    with locked(file.with_name(".lock"), f"{url}: another process is running there"):
        _take_lock(run, file)
        with _refreshed_lock(run, file):
            run.resume()
            _log.info("%s: its copy on this machine is %s", url, run.directory)
            yield run


@contextmanager
def _refreshed_lock(run: RemoteRun, file: Path) -> Iterator[None]:
    """Refreshes the lock of a run in a thread until the block ends, and then releases it."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(_EVERY):
            try:
                run.check_lock()
                _write_lock(run, file)
            except LostError:
                return
            except (UserError, OSError) as error:
                _log.warning("%s; the lock will be refreshed again", error)

    # A thread, since a single read of a model may take longer than the lock lasts.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(UserError):  # the lock expires in ten minutes in any case
            run.check_lock()
            run.location.remove([LOCK])


def _take_lock(run: RemoteRun, file: Path) -> None:
    """Takes the lock with a new token; raises UserError if another process holds it."""
    if row := _row(run.location.read(LOCK)):
        # Only one process uses the folder: a local copy of the lock is that of a killed one.
        local = _row(file.read_bytes() if file.exists() else b"")
        is_local = (local["host"], local["token"]) == (platform.node(), row["token"])
        if not is_local and time.time() < row["time"] + _STALE:
            raise UserError(
                f"{run.url}: {_process(row)} is running there; wait for it, or use another"
                " --out. If it has ended, try again ten minutes after its last update"
            )
        _log.info("%s: taken over from %s, which has ended", run.url, _process(row))
        # Needed because `create` fails on an existing file; the check below catches a rare race.
        run.location.remove([LOCK])
    run.token = secrets.token_hex(8)
    _write_lock(run, file, create=True)
    # Some stores have no exclusive creation of files, so another process may have overwritten it.
    run.check_lock()


def _write_lock(run: RemoteRun, file: Path, *, create: bool = False) -> None:
    row = {"host": platform.node(), "pid": os.getpid(), "time": time.time(), "token": run.token}
    file.write_text(json.dumps(row), encoding="utf-8")
    run.location.put({LOCK: file}, create=create)


def _row(content: bytes | None) -> dict[str, Any]:
    """Returns the fields of a lock, with time 0 if it is unreadable; empty without a lock."""
    # Time 0 makes a damaged lock stale, so it blocks nobody forever.
    row: dict[str, Any] = {"host": "an unknown host", "pid": "?", "time": 0.0, "token": ""}
    with suppress(ValueError, TypeError, KeyError):
        fields = json.loads(content or b"")
        row |= {**fields, "time": float(fields["time"])}
    return {} if content is None else row


def _process(row: dict[str, Any]) -> str:
    time = datetime.fromtimestamp(row["time"]).astimezone()
    return f"process {row['pid']} on {row['host']} (last update at {time:%Y-%m-%d %H:%M})"


def run_at(text: str) -> Path:
    """Returns the directory of a run: the path itself, or this machine's copy of a URL."""
    path = to_path(text)
    copy = view(path)
    if isinstance(path, RemotePath) and not (copy / _MANIFEST).exists():
        raise UserError(f"{path}: is not a run (it has no {_MANIFEST})")
    return copy


def view(path: Path) -> Path:
    """Returns a directory with the current files of a URL, or a local path unchanged."""
    if not isinstance(path, RemotePath):
        return path
    run = RemoteRun(str(path), local_copy("views", str(path)))
    run.directory.mkdir(parents=True, exist_ok=True)
    with FileLock(run.directory.with_name(".lock")):
        try:
            run.get()
        except MissingError:  # a running job has deleted a file after it was listed
            run.get()
    return run.directory
