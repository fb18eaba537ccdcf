"""Who writes to a run at a URL: a small file there, written again every minute.

S3 and GCS create it only if there is none, so that of two machines that begin at once one gets it.
Elsewhere, and where a stale one is taken over, the second to write wins; the first looks for its
token before it puts anything else.
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

_STALE = 600.0  # seconds
_log = logging.getLogger("leporello")


class LostError(UserError):
    """Another process has taken the run over."""


def take_lock(location: Location, file: Path) -> str:
    """Returns the token of a lock; raises UserError if another process has it.

    Where no other process works in the file's folder, a lock that was written from there is dead.
    """
    if row := _row(location.read(LOCK)):
        own = _row(file.read_bytes() if file.exists() else b"")
        same = (own["host"], own["token"]) == (platform.node(), row["token"])
        if not same and time.time() < row["time"] + _STALE:
            raise UserError(
                f"{location.url}: {_who(row)} is running there; wait for it, or give another --out."
                " If it is gone, it is taken over ten minutes after it was last heard of"
            )
        _log.info("%s: taken over from %s, which is gone", location.url, _who(row))
        location.remove([LOCK])
    token = secrets.token_hex(8)
    write_lock(location, file, token, create=True)
    # Some stores cannot create a file only where there is none, so that two may have written.
    check_lock(location, token)
    return token


def check_lock(location: Location, token: str) -> None:
    """Raises LostError if a run's lock is not the one with this token."""
    row = _row(location.read(LOCK))
    if row.get("token") != token:
        raise LostError(
            f"{location.url}: this process has lost the lock, which"
            f" {_who(row) if row else 'nobody'} has now; it ends, so that no two write there"
        )


def write_lock(location: Location, file: Path, token: str, *, create: bool = False) -> None:
    """Says that this process is at a run: in a file, which is then put there."""
    row = {"host": platform.node(), "pid": os.getpid(), "time": time.time(), "token": token}
    file.write_text(json.dumps(row), encoding="utf-8")
    location.put({LOCK: file}, create=create)


def _row(content: bytes | None) -> dict[str, Any]:
    """Returns what a lock says, nothing if there is none; one that cannot be read was long ago."""
    row: dict[str, Any] = {"host": "an unknown host", "pid": "?", "time": 0.0, "token": ""}
    with suppress(ValueError, TypeError, KeyError):
        given = json.loads(content or b"")
        row |= {**given, "time": float(given["time"])}
    return {} if content is None else row


def _who(row: dict[str, Any]) -> str:
    heard = datetime.fromtimestamp(row["time"]).astimezone()
    return f"process {row['pid']} on {row['host']} (last heard of at {heard:%Y-%m-%d %H:%M})"
