"""Lock of a run at a URL: a small file that is refreshed every minute.

S3 and GCS can create a file only if it does not exist, so if two machines start at once, only one
gets the lock. On other stores, and when a stale lock is replaced, the last writer wins; the other
process notices that its token was replaced before it writes anything else.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import secrets
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.storage.location import LOCK, Location

# Ten missed refreshes; it also bounds how far the clocks of two machines may differ.
_STALE = 600.0  # seconds without an update after which a lock may be taken over
_log = logging.getLogger("leporello")


class LostError(UserError):
    """Another process has taken over the run."""


def take_lock(location: Location, file: Path) -> str:
    """Takes the lock and returns its token; raises UserError if another process holds it.

    The caller must be the only process that uses the file's folder. A lock that equals the local
    file was therefore left by an earlier process of this machine, and is replaced.
    """
    if row := _row(location.read(LOCK)):
        # The local copy shows that a killed process of this machine left the lock, so it need not
        # wait.
        local = _row(file.read_bytes() if file.exists() else b"")
        is_local = (local["host"], local["token"]) == (platform.node(), row["token"])
        if not is_local and time.time() < row["time"] + _STALE:
            raise UserError(
                f"{location.url}: {_process(row)} is running there; wait for it, or use another"
                " --out. If it has ended, try again ten minutes after its last update"
            )
        _log.info("%s: taken over from %s, which has ended", location.url, _process(row))
        # Needed because `create` fails on an existing file; the check below catches the rare race
        # of two.
        location.remove([LOCK])
    token = secrets.token_hex(8)
    write_lock(location, file, token, create=True)
    # Some stores have no exclusive creation of files, so another process may have overwritten it.
    check_lock(location, token)
    return token


def check_lock(location: Location, token: str) -> None:
    """Raises LostError if the run's lock has another token."""
    row = _row(location.read(LOCK))
    if row.get("token") != token:
        reason = f"{_process(row)} holds it now" if row else "it was deleted"
        raise LostError(
            f"{location.url}: this process has lost the lock ({reason}) and ends, since only one"
            " process may write"
        )


def write_lock(location: Location, file: Path, token: str, *, create: bool = False) -> None:
    """Writes the lock of this process to a local file, and uploads it."""
    row = {"host": platform.node(), "pid": os.getpid(), "time": time.time(), "token": token}
    file.write_text(json.dumps(row), encoding="utf-8")
    location.put({LOCK: file}, create=create)


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
