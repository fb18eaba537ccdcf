"""Objects as bytes, between processes of one run; nothing that comes from elsewhere is opened."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leporello.config.classes import find_class
from leporello.records import Document, Read
from leporello.sources import file_module_name
from leporello.traces import MOVED

__all__ = ["CANNOT_BE_SENT", "dump", "opened", "pack", "unpack"]

# What sending an object to another process raises if it cannot be.
CANNOT_BE_SENT = (pickle.PicklingError, AttributeError, TypeError)


def dump(thing: object) -> bytes:
    """Returns a thing as bytes for a process of one's own; plug-ins' files are loaded there."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(thing)
    return buffer.getvalue()


def opened(sent: bytes) -> Any:  # noqa: ANN401 -- whatever was sent
    """Returns what a process of one's own has sent.

    Raises:
        ClassError: The file of a plug-in is not here, or cannot be imported.
        ImportError: Likewise for a module.
    """
    return pickle.loads(sent)  # noqa: S301 -- see the first line


def pack(reads: Sequence[Read]) -> bytes:
    """Returns reads as bytes, without the document that all chunks in them are of."""
    buffer = io.BytesIO()
    _WithoutDocument(buffer).dump(list(reads))
    return buffer.getvalue()


def unpack(packed: bytes, document: Document) -> list[Read]:
    """Returns the reads that were packed, on their document."""
    found: list[Read] = _WithDocument(io.BytesIO(packed), document).load()
    return found


class _Pickler(pickle.Pickler):
    """Names a class from a plug-in's file by that file, which no import would find."""

    def reducer_override(self, thing: Any) -> Any:  # noqa: ANN401 -- whatever is pickled
        if not isinstance(thing, type):
            return NotImplemented
        file = getattr(sys.modules.get(thing.__module__), "__file__", None)
        if file is None or thing.__module__ != file_module_name(Path(file)):
            return NotImplemented
        return _class_in, (file, thing.__qualname__)


def _class_in(file: str, name: str) -> type:
    """Returns the class of a plug-in's file, wherever the file lies on this machine."""
    return find_class(f"{MOVED.get(file, file)}:{name}", "", Path())


class _WithoutDocument(pickle.Pickler):
    """Leaves the document out."""

    def persistent_id(self, thing: Any) -> str | None:  # noqa: ANN401 -- whatever is pickled
        return "document" if isinstance(thing, Document) else None


class _WithDocument(pickle.Unpickler):
    """Puts the document in."""

    def __init__(self, file: io.BytesIO, document: Document) -> None:
        super().__init__(file)
        self._document = document

    def persistent_load(self, _: Any) -> Document:  # noqa: ANN401 -- the one name above
        return self._document
