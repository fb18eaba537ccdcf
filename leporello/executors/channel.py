"""Messages between a process and its child, in which stages may write anything to any file.

Objects are pickled for other processes of the same run; data from elsewhere is never loaded.
"""

import io
import pickle
import socket
import struct
import sys
from pathlib import Path
from time import monotonic  # by name: a stage may replace functions of `time`
from typing import Any

from leporello.core.environment.classes import file_module_name, load_file

_HEADER = struct.Struct("!4sI")
_MARK = b"\xf0LEP"  # begins each message, so that other bytes are noticed at once
_LARGEST = 2**28  # bytes of a message
_BLOCK = 2**16
_TO_ARRIVE = 5.0  # seconds from the beginning of a message to its end


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

    def __init__(self, connected: socket.socket, to_send: int = 0) -> None:
        """Takes a socket, and the seconds in which the other process must take a message."""
        if to_send:
            limit = struct.pack("@ll", to_send, 0)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._socket, self._received = connected, bytearray()
        self._no_wait, self._since = socket.MSG_DONTWAIT, 0.0  # since the beginning of a message

    def check(self) -> None:
        """Raises EOFError if a stage of this process has closed the socket."""
        try:
            self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)
        except OSError:
            raise EOFError from None

    def fileno(self) -> int:
        """Returns the number of the socket, for functions that wait for several ones."""
        return self._socket.fileno()

    def send(self, message: object) -> None:
        """Sends an object; raises OSError if the other process does not take it."""
        self.send_bytes(dump(message))

    def send_bytes(self, message: bytes) -> None:
        """Sends a pickled message; see `send`."""
        self._socket.sendall(_HEADER.pack(_MARK, len(message)) + message)

    def receive(self) -> Any:  # noqa: ANN401 -- any object
        """Waits for a message, and returns the object; see `take` for errors."""
        while (message := self.take()) is None:
            self._read(0)
        return load(message)

    def take(self) -> bytes | None:
        """Returns the next pickled message; None if it has not arrived, without waiting for it.

        Raises:
            EOFError: The other process has closed its connection.
            OSError: The other process has ended.
            InvalidMessageError: It sent something else; no further message can be found.
        """
        while (end := self._end()) is None:
            try:
                self._read(self._no_wait)
            except BlockingIOError:
                self._check_rest()
                return None
        self._since = 0.0
        message = bytes(self._received[_HEADER.size : end])
        del self._received[:end]
        return message

    def _check_rest(self) -> None:
        """Raises an error if the rest of a message is late: a stage wrote the beginning."""
        if not self._received:
            return
        self._since = self._since or monotonic()
        if monotonic() - self._since > _TO_ARRIVE:
            raise InvalidMessageError

    def _end(self) -> int | None:
        """Returns where the next message ends; None if it has not arrived completely."""
        start = bytes(self._received[: len(_MARK)])
        if start != _MARK[: len(start)]:
            raise InvalidMessageError
        if len(self._received) < _HEADER.size:
            return None
        _, size = _HEADER.unpack_from(self._received)
        if size > _LARGEST:
            raise InvalidMessageError
        end = _HEADER.size + int(size)
        return end if end <= len(self._received) else None

    def _read(self, flags: int) -> None:
        received = self._socket.recv(_BLOCK, flags)
        if not received:
            raise EOFError
        self._received += received
