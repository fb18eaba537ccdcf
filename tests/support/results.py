"""Results that a test has changed on purpose."""

from __future__ import annotations

from pathlib import Path

from leporello.jobs.checksums import checksums, read_mark, write_mark


def reseal(folder: Path) -> None:
    """Gives the results in a folder the checksums that they have now."""
    mark = read_mark(folder)
    write_mark(folder, {**mark, "sha256": {**checksums(folder, mark["sha256"])}})
