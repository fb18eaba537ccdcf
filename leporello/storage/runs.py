"""Runs at URLs: this machine works in a copy, and puts whole files there; or only looks at one."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from leporello.core.errors import UserError
from leporello.storage.location import (
    LOCK,
    PARTIAL,
    Location,
    MissingError,
    is_web,
    local_copy,
    version_of,
)
from leporello.storage.lock import LostError, check_lock, take_lock, write_lock
from leporello.storage.paths import RemotePath, to_path

_EVERY = 60.0  # seconds
_AT_ONCE = 256  # files
_MANIFEST, _JOURNAL = "manifest.json", "-journal"
_LEDGER = ".remote.jsonl"  # of a copy: its files' versions when fetched, or sizes when put
_log = logging.getLogger("leporello")


@dataclass
class RemoteRun:
    """A run at a URL, and a copy of it; several threads, processes and machines may put files.

    Attributes:
        url: URL of the run.
        directory: The copy, on this machine.
        token: Token of the lock that must be there when files are put; empty looks for none.
        lost: Error that says why the run is another process's by now; None if it is not.
    """

    url: str
    directory: Path
    token: str = ""
    lost: LostError | None = None

    def __post_init__(self) -> None:
        if is_web(self.url):
            raise UserError(f"{self.url}: web servers are only read from, file by file")

    def here(self) -> RemoteRun:
        """Returns the same run with a copy on this machine, for a worker."""
        return RemoteRun(self.url, local_copy("runs", self.url), self.token)

    def check(self) -> None:
        """Called between steps; raises LostError if another process has taken the run over."""
        if self.lost:
            raise self.lost

    def put(self, *names: str) -> None:
        """Puts files, and folders with all files in them; removes there what is not here.

        Without names it puts what neither was put nor fetched.
        """
        location, copied = Location(self.url), {} if names else self._known()
        if self.token:
            try:
                check_lock(location, self.token)
            except LostError as error:
                self.lost = error  # for good, whatever is written there meanwhile
                raise
        lost = [n for name in names if not self._file(name).exists() for n in location.files(name)]
        location.remove(lost)
        self._note(dict.fromkeys(lost))
        files = {name: path for name, path in self._files(names or [""]) if name not in copied}
        sizes = {name: path.stat().st_size for name, path in files.items()}
        location.put(files)
        self._note(sizes)

    def get(self, *names: str) -> None:
        """Fetches the files under these names; without any, what is new or has changed there.

        Then what is gone there since it was fetched or put is removed here.
        """
        location = Location(self.url)
        remote = {n: info for name in names or [""] for n, info in location.files(name).items()}
        copied = {} if names else self._known()
        for name in copied.keys() - remote.keys():
            self._file(name).unlink(missing_ok=True)
        marks = {name: (version_of(info), info.get("size")) for name, info in remote.items()}
        stale = [
            (name, self._file(name))
            for name in sorted(remote)
            if copied.get(name, "?") not in marks[name] or not self._file(name).exists()
        ]
        for start in range(0, len(stale), _AT_ONCE):
            files = dict(stale[start : start + _AT_ONCE])
            location.get(files)
            self._note({name: marks[name][0] or marks[name][1] for name in files})

    def resume(self) -> None:
        """Fetches a run to go on with, and puts what never was, if it is of the same run."""
        location, manifest = Location(self.url), self.directory / _MANIFEST
        there = location.read(_MANIFEST)
        if there is None and (others := location.files()):
            raise UserError(
                f"{self.url}: holds other files ({min(others)}, …) and no run; give another --out"
            )
        if there is None and _MANIFEST in self._known():
            raise UserError(
                f"{self.url}: the run that lay there is gone. This machine's copy of it is"
                f" {self.directory}: remove that to begin anew, or copy it back to the URL"
            )
        if there is None or not manifest.exists() or manifest.read_bytes() != there:
            shutil.rmtree(self.directory, ignore_errors=True)  # its journals are another run's
        self.directory.mkdir(parents=True, exist_ok=True)
        self.get()
        self.put()

    def _files(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Yields the files under some names that are whole, and the run's.

        A store that a killed worker left has a journal of SQLite beside it. It is not whole before
        the next worker has opened it, and is put then.
        """
        for top in map(self._file, names):
            for path in [top] if top.is_file() else top.rglob("*"):
                name = path.relative_to(self.directory)
                partial = any(part.endswith(PARTIAL) for part in name.parts)
                partial |= path.name.endswith(_JOURNAL)
                partial |= path.with_name(path.name + _JOURNAL).exists()
                if path.is_file() and not partial and not path.name.startswith((".lock", _LEDGER)):
                    yield name.as_posix(), path

    def _file(self, name: str) -> Path:
        if ".." in PurePosixPath(name).parts or name.startswith("/"):
            raise UserError(f"{self.url}: {name} is no name of a run's file; remove it there")
        return self.directory / name

    def _known(self) -> dict[str, str | int]:
        copied: dict[str, str | int | None] = {}
        ledger = self.directory / _LEDGER
        for line in ledger.read_bytes().splitlines() if ledger.exists() else ():
            with suppress(ValueError):  # half a line, of a process that was killed
                copied |= json.loads(line)
        return {name: mark for name, mark in copied.items() if mark is not None}

    def _note(self, marks: Mapping[str, str | int | None]) -> None:
        with (self.directory / _LEDGER).open("ab", buffering=0) as file:
            file.write(b"".join(json.dumps({name: marks[name]}).encode() + b"\n" for name in marks))


@contextmanager
def remote_run(url: str) -> Iterator[RemoteRun]:
    """Keeps other processes out of a run at a URL, and fetches what lies there."""
    run = RemoteRun(url, local_copy("runs", url))
    run.directory.mkdir(parents=True, exist_ok=True)
    file = run.directory.with_name("lock.json")
    with ExitStack() as stack:
        try:
            stack.enter_context(FileLock(file.with_name(".lock"), timeout=0))
        except Timeout:
            raise UserError(f"{url}: another process is running there") from None
        run.token = take_lock(Location(url), file)
        stack.enter_context(_refreshed(run, file))
        run.resume()
        _log.info("%s: its copy on this machine is %s", url, run.directory)
        yield run


@contextmanager
def _refreshed(run: RemoteRun, file: Path) -> Iterator[None]:
    """Refreshes a run's lock in a thread until the block ends, and then gives it back."""
    location, ended = Location(run.url), threading.Event()

    def work() -> None:
        while not (ended.wait(_EVERY) or run.lost):
            try:
                check_lock(location, run.token)
                write_lock(location, file, run.token)
            except LostError as error:
                run.lost = error
            except (UserError, OSError) as error:
                _log.warning("%s; it is tried again", error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with suppress(UserError):  # then others take it over in ten minutes
            check_lock(location, run.token)
            location.remove([LOCK])


def run_at(text: str) -> Path:
    """Returns the directory of a run: as given, or this machine's copy of the one at a URL."""
    path = to_path(text)
    copy = view(path)
    if isinstance(path, RemotePath) and not (copy / _MANIFEST).exists():
        raise UserError(f"{path}: is not a run (it has no {_MANIFEST})")
    return copy


def view(path: Path) -> Path:
    """Returns a directory with what lies at a URL now; or a path of this machine, as it is."""
    if not isinstance(path, RemotePath):
        return path
    run = RemoteRun(str(path), local_copy("views", str(path)))
    run.directory.mkdir(parents=True, exist_ok=True)
    with FileLock(run.directory.with_name(".lock")):
        try:
            run.get()
        except MissingError:  # a run under way has removed a file that it had listed
            run.get()
    return run.directory
