"""Messages between a process and its child, in which stages may write anything to any file.

Objects are pickled for other processes of the same run; data from elsewhere is never loaded.
"""

import io
import os
import pickle
import socket
import struct
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from leporello.core.environment.classes import file_module_name, load_file

_LARGEST = 2**28  # bytes of a message


def dump(value: object) -> bytes:
    """Pickles an object for another process of the run, which loads files of plug-ins."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(value)
    return buffer.getvalue()


def load(data: bytes) -> Any:  # noqa: ANN401 -- any object
    """Returns the object that another process of the run pickled."""
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


class InvalidMessageError(Exception):
    """The other process sent something other than a message."""


class Channel:
    """Connection to another process, which transfers pickled messages."""

    def __init__(self, connected: socket.socket, seconds: int = 0) -> None:
        """Takes a socket, and the seconds that a message may take; 0 sets no limit."""
        if seconds:
            limit = struct.pack("@ll", seconds, 0)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self._socket, self._connection = connected, Connection(os.dup(connected.fileno()))
        self._peek = socket.MSG_PEEK | socket.MSG_DONTWAIT

    def check(self) -> None:
        """Raises EOFError if a stage of this process has closed the socket."""
        try:
            self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)
        except OSError:
            raise EOFError from None

    def fileno(self) -> int:
        """Returns the number of the socket, for functions that wait for several ones."""
        return self._socket.fileno()

    def send(self, message: bytes) -> None:
        """Sends a pickled message; raises OSError if the other process does not take it."""
        self._connection.send_bytes(message)

    def receive(self) -> Any:  # noqa: ANN401 -- any object
        """Waits for a message, and returns the object; see `take` for errors."""
        return load(self._connection.recv_bytes(_LARGEST))

    def take(self) -> bytes | None:
        """Returns the next pickled message; None if none has arrived, without waiting for it.

        Raises:
            EOFError: The other process has closed its connection.
            OSError: The other process has ended.
            InvalidMessageError: It sent something else; no further message can be found.
        """
        try:
            # Not `poll`, which uses clocks that a stage may replace.
            if not self._socket.recv(1, self._peek):
                raise EOFError
        except BlockingIOError:
            return None
        try:
            return self._connection.recv_bytes(_LARGEST)
        except OSError as error:
            if isinstance(error, ConnectionError):
                raise
            # The length is too large, or a part does not arrive: a stage wrote the beginning.
            raise InvalidMessageError from None
