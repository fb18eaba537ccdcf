"""Checksums of results: what compares, reports and submits reads what the run wrote."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import read_json, write_json
from leporello.core.hashing import digest
from leporello.core.records import JSON

_log = logging.getLogger("leporello")

MERGED = ".merged.json"  # beside the results: what they hold, and their checksums
_SUM = "sum"
_OLD = {"limit", "shards", "examples", "failures"}  # of marks before they had a checksum


def checksums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Returns the SHA-256 of files of a folder, by name; nothing for what is no file."""
    return {name: _sha256(folder / name) for name in names}


def _sha256(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_mark(folder: Path, mark: Mapping[str, JSON], name: str = MERGED) -> None:
    """Writes what results hold, merged or a part of them, with a checksum of it."""
    write_json(folder / name, {**mark, _SUM: digest({**mark})}, indent=None)


def read_mark(folder: Path, name: str = MERGED) -> dict[str, Any]:
    """Returns what results hold; nothing if that is not written, or if it was changed."""
    path = folder / name
    try:
        mark = read_json(path) if path.exists() else {}
    except UserError:
        mark = {_SUM: ""}
    found = dict(mark) if isinstance(mark, dict) else {_SUM: ""}
    if found.keys() <= _OLD or found.pop(_SUM, None) == digest(found):
        return found
    _log.warning("%s: changed since it was written: what it tells of is done again", path)
    return {}


def changed(folder: Path, *names: str) -> str:
    """Returns the first of these results that is not as the run wrote it; empty if all are."""
    known = read_mark(folder).get("sha256", {})
    for name in names:
        if name in known and _sha256(folder / name) != known[name]:
            return name
    return ""


def check_results(folder: Path, *names: str) -> None:
    """Looks whether results of a finished run are as it wrote them.

    Raises:
        UserError: One is gone, or was changed since.
    """
    if name := changed(folder, *names):
        raise UserError(
            f"{folder / name}: is gone, or changed since the run wrote it: delete it and run the"
            " same command again, which makes it from the journal without reading anything"
        )
