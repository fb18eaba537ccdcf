"""Lines with checksums: each tells of itself and of all before it whether they are as written."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import BinaryIO

_SIZE = 8  # bytes
_KEY = b',"sum":"'
_TAIL = len(_KEY) + 2 * _SIZE + len(b'"}\n')


def sealed(row: bytes, before: bytes) -> tuple[bytes, bytes]:
    """Returns a line with its checksum as the last key.

    Args:
        row: A JSON object that is not empty, with a line break.
        before: Checksum of the line before; empty for the first.

    Returns:
        The line, and its checksum.
    """
    body = row.removesuffix(b"}\n")
    checksum = blake2b(before + body, digest_size=_SIZE).digest()
    return body + _KEY + checksum.hex().encode() + b'"}\n', checksum


def believed(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """Yields lines without their checksums, and these, up to the first that does not fit."""
    before = b""
    while line := file.readline():
        row = line[:-_TAIL] + b"}\n"
        whole, before = sealed(row, before)
        if whole != line:
            return
        yield row, before
