"""Opening the user's files: what may be read as one, how much of it, and what all formats share."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.core.files import opened
from leporello.core.records import Document
from leporello.text.outline import Extracted

__all__ = ["LARGEST", "Format", "document_of", "file_hash", "read_bytes"]

LARGEST = 2**30  # bytes of a document; its text, offsets and index take many times as much


class Format(ABC):
    """A file format: what it is recognised by, and how its text is had.

    Attributes:
        suffixes: Suffixes of its files, in lower case, with the dot.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- what formats look at
        """Returns whether the content says that it is this format, whatever the suffix says.

        Args:
            head: Bytes of the file, at least the first 64 KiB.
            path: Path of the file.
        """
        return False

    @abstractmethod
    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text of a file, and what is to be told of it.

        Args:
            data: Bytes of the file.
            path: Path of the file, for messages and its name; it may be of a part of a file.

        Raises:
            UserError: The file is not of this format, broken, or locked.
        """

    def load(self, path: Path) -> Document:
        """Returns a file as a document.

        Raises:
            UserError: As `extract` does; or the file cannot be read, is too large, or has no text.
        """
        return document_of(self, read_bytes(path), path)


def document_of(format: Format, data: bytes, path: Path) -> Document:  # noqa: A002 -- what it is
    """Returns the document that a file holds.

    Args:
        format: The file's format.
        data: Bytes of the file.
        path: Path of the file.

    Raises:
        UserError: As `Format.load` does.
    """
    try:
        found = format.extract(data, path)
    except MemoryError:
        raise UserError(f"{path}: does not fit into this machine's memory; divide it") from None
    if not found.text.strip():
        reasons = "; ".join(dict.fromkeys(f"{loss.what}: {loss.why}" for loss in found.losses))
        raise UserError(f"{path}: the file has no text" + (f" ({reasons})" if reasons else ""))
    title = " ".join(found.title.split()) or path.stem
    outline = (title, found.sections, ())
    return Document(path.name, found.text, *outline, found.places, found.losses, found.notes)


def read_bytes(path: Path) -> bytes:
    """Returns what a document's file holds.

    Raises:
        UserError: It cannot be read, or is too large.
    """
    with _document(path) as file:
        return file.read()


def file_hash(path: Path) -> bytes:
    """Returns the SHA-256 of a document's file, in the memory of a block.

    Raises:
        UserError: As `read_bytes` does.
    """
    with _document(path) as file:
        return hashlib.file_digest(file, "sha256").digest()


@contextmanager
def _document(path: Path) -> Iterator[BufferedReader]:
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            limit = f"{LARGEST // 2**20} MiB"
            raise UserError(f"{path}: is larger than {limit}, the most of a document; divide it")
        try:
            yield file
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
