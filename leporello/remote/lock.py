"""Who writes to a run at a URL: a small file there, which says so again every minute.

Where the store can make a file only if there is none (S3 and GCS can), two machines that begin at
once cannot both get it. Elsewhere, and where a stale lock is taken over, the second to write wins,
and the other one notices before it writes anything else.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from leporello.directory import alive
from leporello.errors import UserError
from leporello.remote.folder import LOCK, Folder

__all__ = ["STALE", "LostError", "RemoteLock"]

STALE = timedelta(minutes=10)
_WAITS = (0.1, 0.9, 0.0)  # seconds
_log = logging.getLogger("leporello")

_held: set[str] = set()  # the tokens of this process's own locks


class LostError(UserError):
    """Another process has taken the run over."""


class RemoteLock:
    """The lock of a run at a URL.

    Attributes:
        folder: Of the run.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._token, self._turn = secrets.token_hex(8), threading.Lock()

    def take(self) -> None:
        """Takes it.

        Raises:
            UserError: Another process has it, and was heard of within the last minutes.
        """
        if (row := self._read()) is not None:
            self._refuse_if_held(row)
            _log.info("%s: taken over from %s, which is gone", self.folder.url, _who(row))
            self.folder.remove(LOCK)
        _held.add(self._token)
        self.folder.create(LOCK, self._row())
        self._check()

    def refresh(self) -> None:
        """Says that this process is still at it.

        Raises:
            LostError: Another process has taken over.
            UserError: The store does not answer.
        """
        with self._turn:  # one thread at a time: it must not see the other's half of a lock
            self._check()
            self.folder.write(LOCK, self._row())

    def release(self) -> None:
        """Gives it back, if it is still this process's."""
        if self._token not in _held:
            return
        _held.discard(self._token)
        row = self._read()
        if row is not None and row.get("token") == self._token:
            self.folder.remove(LOCK)

    def _check(self) -> None:
        row = self._read()
        if row is None or row.get("token") != self._token:
            other = "which was removed" if row is None else f"which {_who(row)} has now"
            raise LostError(
                f"{self.folder.url}: this process has lost the lock ({LOCK}), {other}; it ends, so"
                " that no two of them write there"
            )

    def _refuse_if_held(self, row: Mapping[str, Any]) -> None:
        if _is_gone(row):
            return
        until = _heard(row) + STALE
        raise UserError(
            f"{self.folder.url}: {_who(row)} is running there; wait for it, or give another --out."
            f" If it is gone, it is taken over from {until.astimezone():%H:%M} on"
        )

    def _read(self) -> Mapping[str, Any] | None:
        """Returns what the lock says; nothing if it cannot be read, None if there is none."""
        for wait in _WAITS:
            content = self.folder.read(LOCK)
            if content is None:
                return None
            with suppress(ValueError):
                row = json.loads(content)
                if isinstance(row, dict):
                    return row
            time.sleep(wait)  # where a store is a disk, it may be just being written
        return {}

    def _row(self) -> bytes:
        row = {
            "host": platform.node(),
            "pid": os.getpid(),
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "token": self._token,
            "machine": _machine(),
        }
        return json.dumps(row).encode()


def _who(row: Mapping[str, Any]) -> str:
    if not row:
        return "another process"
    return f"process {row.get('pid')} on {row.get('host')} (last heard of at {row.get('time')})"


def _heard(row: Mapping[str, Any]) -> datetime:
    with suppress(TypeError, ValueError):
        heard = datetime.fromisoformat(str(row.get("time")))
        return heard if heard.tzinfo else heard.replace(tzinfo=UTC)
    return datetime.min.replace(tzinfo=UTC)


def _is_gone(row: Mapping[str, Any]) -> bool:
    """Says whether the process is known to be dead, or was not heard of for too long."""
    pid = row.get("pid")
    if row.get("machine") == _machine() and isinstance(pid, int):
        left = pid == os.getpid() and row.get("token") not in _held  # it could not be removed
        if left or not alive(pid):
            return True
    return datetime.now(UTC) - _heard(row) > STALE


def _machine() -> str:
    """Returns what differs where process numbers mean others: this boot of this container."""
    boot, namespace = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    with suppress(OSError):
        return f"{boot.read_text().strip()} {namespace.readlink()}"
    return f"{platform.node()} {os.getpid()}"  # where that cannot be told, nothing is the same
