"""A run's directory while it runs: on this machine's disk, or at a URL.

A run at a URL works in this machine's copy of it: journals are appended to and synced, which object
stores cannot do. What it writes is put there when it begins, every minute, and when it ends.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leporello.directory import RunDirectory, safe_name
from leporello.errors import UserError
from leporello.models import cache_directory
from leporello.remote.copies import short_hash
from leporello.remote.folder import Folder
from leporello.remote.lock import LostError, RemoteLock
from leporello.remote.paths import RemotePath
from leporello.remote.replica import Replica

__all__ = ["Held", "held"]

_EVERY = 60.0  # seconds
_SHARE = 9  # times as long as the last putting took, so that it never is more than a tenth
_log = logging.getLogger("leporello")


@dataclass
class Held:
    """A run's directory, which no other process writes to.

    Attributes:
        directory: On this machine.
    """

    directory: RunDirectory

    def save(self) -> None:
        """Puts what was written where it belongs, before anything that depends on it.

        Raises:
            UserError: It cannot be put there.
        """

    def check(self) -> None:
        """Called between steps.

        Raises:
            UserError: Another machine has taken the run over.
        """


@contextmanager
def held(place: Path) -> Iterator[Held]:
    """Keeps others out of a run's directory.

    Args:
        place: Its path, or `RemotePath`.

    Raises:
        UserError: Another process is running there; it cannot be written to; a store refuses.
    """
    if not isinstance(place, RemotePath):
        directory = RunDirectory(place)
        with directory.held():
            yield Held(directory)
        return
    url = str(place)
    path = cache_directory() / "runs" / short_hash(url) / safe_name(place.name)
    folder, directory = Folder.at(url), RunDirectory(path)
    with directory.held(), _locked(folder) as lock:
        remote = _HeldRemotely(directory, Replica(folder, path), lock)
        _log.info("%s: its copy on this machine is %s", url, path)
        with remote.saving():
            yield remote


@contextmanager
def _locked(folder: Folder) -> Iterator[RemoteLock]:
    lock = RemoteLock(folder)
    try:
        lock.take()
        yield lock
    finally:
        try:
            lock.release()
        except UserError as error:
            _log.warning(
                "%s; the lock stays, and other machines take it over in ten minutes", error
            )


class _HeldRemotely(Held):
    """A run at a URL."""

    def __init__(self, directory: RunDirectory, replica: Replica, lock: RemoteLock) -> None:
        super().__init__(directory)
        self._replica, self._lock = replica, lock
        self._turn = threading.Lock()
        self._lost: LostError | None = None

    def save(self) -> None:
        with self._turn:  # one thread at a time
            self._refresh()
            self._replica.push()

    def check(self) -> None:
        if self._lost:
            raise self._lost

    def _refresh(self) -> None:
        try:
            self._lock.refresh()
        except LostError as error:
            self._lost = error
            raise

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Fetches what is there, and puts there what is written, now and then and at the end."""
        self._replica.pull()
        with _Again(self._refresh, share=0):  # of its own: putting a large file takes its time
            try:
                with _Again(self.save, share=_SHARE):
                    yield
            except Exception:
                self._try_to_save()  # the first error is the one to tell
                raise
            self._save_all()
        _log.info("saved to %s", self._replica.folder.url)

    def _save_all(self) -> None:
        try:
            self.save()
        except UserError as error:
            kept = f"all of it is in {self.directory.path}, and the same command puts it there"
            raise UserError(f"{error}. The run has ended; {kept}") from error

    def _try_to_save(self) -> None:
        try:
            self.save()
        except UserError as error:
            _log.warning("%s. All that is finished is kept in %s", error, self.directory.path)


class _Again:
    """Does something in a thread every minute, until the block ends; faults are told."""

    def __init__(self, action: Callable[[], None], share: int) -> None:
        self._action, self._share = action, share
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        if kind is None or issubclass(kind, Exception):  # else the user wants an end at once
            self._thread.join()

    def _work(self) -> None:
        wait = _EVERY
        while not self._ended.wait(wait):
            begun = time.monotonic()
            try:
                self._action()
            except LostError:
                return  # told where the run checks
            except UserError as error:
                _log.warning("%s; it is tried again", error)
            except OSError as error:
                _log.warning("%s: %s; it is tried again", error.filename, error.strerror)
            wait = max(_EVERY, self._share * (time.monotonic() - begun))
