"""Pickles objects for other processes of the same run; data from elsewhere is never loaded."""

from __future__ import annotations

import io
import pickle
import sys
from pathlib import Path
from typing import Any

from leporello.core.environment.classes import file_module_name, load_file


def dump(value: object) -> bytes:
    """Pickles an object for another process of the run, which loads files of plug-ins."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(value)
    return buffer.getvalue()


def load(data: bytes) -> Any:  # noqa: ANN401 -- any object
    """Returns the object that another process of the run pickled.

    Raises:
        ClassError: The file of a plug-in is missing or cannot be imported.
        ImportError: A module cannot be imported.
    """
    # Loading a pickle can run any code, so only processes of this run may be the source.
    return pickle.loads(data)  # noqa: S301 -- see the comment above


class _Pickler(pickle.Pickler):
    """Refers to a class of a plug-in by its file, since the file is not an importable module."""

    def reducer_override(self, obj: Any) -> Any:  # noqa: ANN401 -- any object
        if not isinstance(obj, type):
            return NotImplemented
        file = getattr(sys.modules.get(obj.__module__), "__file__", None)
        # Names of plug-in modules contain a hash of their path, which differs between machines.
        if file is None or obj.__module__ != file_module_name(Path(file)):
            return NotImplemented
        return _class_in, (file, obj.__qualname__)


def _class_in(file: str, name: str) -> type:
    """Returns a class of a plug-in's file, whose path may differ on this machine."""
    cls: type = getattr(load_file(Path(file)), name)
    return cls
