"""Runs at URLs, to be looked at: a copy that nothing is put back from."""

from __future__ import annotations

from pathlib import Path

from leporello.directory import safe_name
from leporello.errors import UserError
from leporello.models import cache_directory
from leporello.remote.copies import locked, short_hash
from leporello.remote.folder import Folder
from leporello.remote.paths import RemotePath, place
from leporello.remote.replica import Replica

__all__ = ["run_at", "view"]


def run_at(text: str) -> Path:
    """Returns the directory of a run: as given, or this machine's copy of the one at a URL.

    Raises:
        UserError: No run lies at the URL, or it cannot be fetched.
    """
    path = place(text)
    found = view(path)
    if isinstance(path, RemotePath) and not (found / "manifest.json").exists():
        raise UserError(f"{path}: no run lies there (it has no manifest.json)")
    return found


def view(path: Path) -> Path:
    """Returns a directory with what lies at a URL now; a path on this machine is returned as it is.

    Raises:
        UserError: It cannot be fetched.
    """
    if not isinstance(path, RemotePath):
        return path
    copy = cache_directory() / "views" / short_hash(str(path)) / safe_name(path.name)
    with locked(copy.parent, f"{path}: another process is fetching it; waiting"):
        Replica(Folder.at(str(path)), copy).mirror()
    return copy
