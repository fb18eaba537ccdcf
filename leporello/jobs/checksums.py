"""Checksums of results, by which other commands detect files that changed after the run."""

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

MERGED = ".merged.json"  # file beside the results, with their shards and checksums
_SUM = "sum"
_OLD = {"limit", "shards", "examples", "failures"}  # keys of older marks, without a checksum


def checksums(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Returns the SHA-256 of files of a folder, by name; empty for missing files."""
    return {name: _sha256(folder / name) for name in names}


def _sha256(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_mark(folder: Path, mark: Mapping[str, JSON], name: str = MERGED) -> None:
    """Writes the mark of results, which lists their contents, with a checksum."""
    write_json(folder / name, {**mark, _SUM: digest({**mark})}, indent=None)


def read_mark(folder: Path, name: str = MERGED) -> dict[str, Any]:
    """Returns the mark of results; empty if it is missing or was changed."""
    path = folder / name
    try:
        mark = read_json(path) if path.exists() else {}
    except UserError:
        mark = {_SUM: ""}
    fields = dict(mark) if isinstance(mark, dict) else {_SUM: ""}
    # Older runs have no checksum; they stay readable, but nothing detects their changes.
    if fields.keys() <= _OLD or fields.pop(_SUM, None) == digest(fields):
        return fields
    _log.warning("%s: changed since it was written; the results that it lists are redone", path)
    return {}


def changed(folder: Path, *names: str) -> str:
    """Returns the first of these results that changed since the run wrote it; empty without one."""
    hashes = read_mark(folder).get("sha256", {})
    for name in names:
        if name in hashes and _sha256(folder / name) != hashes[name]:
            return name
    return ""


def check_results(folder: Path, *names: str) -> None:
    """Checks that results of a finished run are unchanged.

    Raises:
        UserError: A file is missing or was changed.
    """
    if name := changed(folder, *names):
        raise UserError(
            f"{folder / name}: is missing, or changed since the run wrote it; delete it and run"
            " the same command again, which restores it from the stores without any read"
        )
