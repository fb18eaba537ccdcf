"""Checksums of results: what compares, reports and submits reads what the run wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from leporello.core.errors import UserError
from leporello.core.files import read_json

MERGED = ".merged.json"  # beside the results: what they hold, and their checksums


def checksums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Returns the SHA-256 of files of a folder, by name."""
    return {name: _sha256(folder / name) for name in names}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def changed(folder: Path, *names: str) -> str:
    """Returns the first of these results that is not as the run wrote it; empty if all are."""
    mark = folder / MERGED
    known = read_json(mark).get("sha256", {}) if mark.exists() else {}
    for name in names:
        if name in known and (path := folder / name).exists() and _sha256(path) != known[name]:
            return name
    return ""


def check_results(folder: Path, *names: str) -> None:
    """Looks whether results of a finished run are as it wrote them.

    Raises:
        UserError: One was changed since.
    """
    if name := changed(folder, *names):
        raise UserError(
            f"{folder / name}: changed since the run wrote it: delete it and run the same command"
            " again, which makes it from the journal without reading anything"
        )
