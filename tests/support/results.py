"""Makes results valid again after a test has changed them."""

from pathlib import Path

from leporello.jobs.manifest import checksums, read_mark, write_mark


def reseal(folder: Path) -> None:
    """Updates the checksums of the results in a folder."""
    mark = read_mark(folder)
    write_mark(folder, {**mark, "sha256": {**checksums(folder, mark["sha256"])}})
