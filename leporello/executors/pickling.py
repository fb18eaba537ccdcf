"""Objects as bytes, between processes of one run; nothing that comes from elsewhere is load."""

from __future__ import annotations

import io
import pickle
import sys
from pathlib import Path
from typing import Any

from leporello.core.environment.classes import file_module_name, load_file


def dump(thing: object) -> bytes:
    """Returns a thing as bytes for a process of one's own; plug-ins' files are loaded there."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(thing)
    return buffer.getvalue()


def load(data: bytes) -> Any:  # noqa: ANN401 -- whatever was sent
    """Returns what a process of one's own has sent.

    Raises:
        ClassError: The file of a plug-in is not here, or cannot be imported.
        ImportError: Likewise for a module.
    """
    # A pickle runs what is in it: what comes in here was written by processes of this run.
    return pickle.loads(data)  # noqa: S301 -- see the first line


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
    cls: type = getattr(load_file(Path(file)), name)
    return cls
