"""Writes rows as JSON Lines, and makes changed results valid again."""

import bz2
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles


def json_lines(rows: Iterable[Any]) -> bytes:
    """Returns one line per row; texts and bytes are not encoded as JSON."""
    lines = (row if isinstance(row, str | bytes) else json.dumps(row) for row in rows)
    return b"".join((x.encode() if isinstance(x, str) else x) + b"\n" for x in lines)


def write_rows(path: Path, *rows: Any) -> Path:
    """Writes a file of rows, compressed if its name ends with `.bz2`; returns its path."""
    content = json_lines(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bz2.compress(content) if path.suffix == ".bz2" else content)
    return path


def reseal(folder: Path) -> None:
    """Updates the checksums of the results in a folder."""
    files = JobFiles(RunDirectory(folder.parents[1]), folder.parent.name, folder.name)
    files.write_mark(files.mark)
