"""Processes that use the cache: one file each in LEPORELLO_CACHE/running, named NODE.PROCESS."""

from __future__ import annotations

import atexit
import os
import platform
import time
from contextlib import suppress
from pathlib import Path

from leporello.core.environment.platform import is_alive

_DAY = 86_400.0
_registered: set[tuple[Path, int]] = set()


def register(root: Path) -> None:
    """Writes the file of this process, once; it is removed when the process ends."""
    process = os.getpid()
    if (root, process) in _registered:
        return
    _registered.add((root, process))
    path = _file(root, process)
    with suppress(OSError):  # the cache may be read-only
        path.parent.mkdir(exist_ok=True)
        path.touch()
        atexit.register(_remove, path, process)


def others_since(root: Path) -> float | None:
    """Returns when the oldest of the other running processes began to use the cache.

    Seconds since 1970; None without other processes. Files of processes that have ended are
    removed. Processes of other machines count for a day, since they cannot be checked.
    """
    since: list[float] = []
    for path in (root / "running").glob("*"):
        node, _, process = path.name.rpartition(".")
        if process == str(os.getpid()) and node == platform.node():
            continue
        with suppress(OSError, ValueError):
            began = path.stat().st_mtime
            is_local = node == platform.node()
            if is_alive(int(process)) if is_local else time.time() - began < _DAY:
                since.append(began)
            else:
                path.unlink()
    return min(since, default=None)


def _file(root: Path, process: int) -> Path:
    return root / "running" / f"{platform.node()}.{process}"


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:  # not a fork of it
        with suppress(OSError):
            path.unlink()
