"""Worker processes, connected to this process by an inherited socket.

A worker is started as a new interpreter, since a fork of a process that runs models can hang. It is
not started by multiprocessing, which would run the user's script again.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from json import dumps, loads  # by name: a stage may replace functions of modules
from mmap import mmap
from multiprocessing.connection import wait
from pathlib import Path
from time import monotonic

from leporello.core.environment.platform import die_with_parent, kill_marked, unnamed_file
from leporello.core.environment.process import open_standard_streams
from leporello.engine.failures import OUTSIDE, OVERDUE, Phase
from leporello.executors.channel import Channel, InvalidMessageError, dump
from leporello.executors.interface import Death

INTERVAL = 0.2  # seconds to wait for messages, between checks of the workers
_MAIN = "from leporello.executors.worker import main; main()"
_LOOK = 1.0  # seconds between checks whether the parent is alive
_TO_TRANSFER = 10  # seconds in which a process must take a message, or complete one
# The socket closes shortly before the status exists, and the status names the signal.
_PATIENCE = 0.2  # seconds to wait for a process that has closed its socket
_MARK = "LEPORELLO_CHILD"  # environment variable that the processes of a child inherit


class SharedMemory:
    """Memory that a worker shares with its parent, which reads it after the worker's death.

    Not messages: a stopped worker sends none, and each call of a stage writes here.
    """

    SIZE = 1024  # bytes

    def __init__(self, file: int) -> None:
        """Maps an open file of `SIZE` bytes."""
        self._memory = mmap(file, self.SIZE)
        self.late_at = memoryview(self._memory)[:8].cast("d")  # one number; see `be_watched`

    def start(self, shard: int, phase: Phase) -> None:
        """Stores that an operation on a shard is started."""
        line = dumps((shard, *phase)).encode() + b"\n"
        self._memory[8 : 8 + len(line)] = line

    def death(self, cause: str) -> Death:
        """Returns the death of the worker, with the operation that it started last."""
        with suppress(ValueError):  # it started none
            shard, *phase = loads(self._memory[8:].partition(b"\n")[0])
            return Death(cause, shard, tuple(phase))
        return Death(cause)


class WorkerProcess:
    """A worker process on this machine; see `WorkerLink`."""

    def __init__(
        self,
        spec: bytes,
        threads: int,
        variables: Mapping[str, str],
        remapped: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the process with a pickled group of jobs.

        `remapped` contains paths of plug-ins' files here, by their paths on the driver's machine.
        """
        parent_socket, child_socket = socket.socketpair()
        paths = [entry or str(Path.cwd()) for entry in sys.path]
        token = uuid.uuid4().hex
        self._mark = f"{_MARK}={token}"
        with child_socket, unnamed_file() as file:
            file.truncate(SharedMemory.SIZE)
            self._memory = SharedMemory(file.fileno())
            files = child_socket.fileno(), file.fileno()
            # Not `multiprocessing`, which runs the user's script again in each child (decision 11).
            self._process = subprocess.Popen(  # noqa: S603 -- this project's own code
                [sys.executable, "-c", _MAIN, *map(str, files)],
                pass_fds=files,
                # A debugger in a worker would wait for input that nobody sees; `--unsupervised`
                # runs plug-ins in the command's own process (decision 40).
                stdin=subprocess.DEVNULL,
                stdout=2,  # output of plug-ins must not mix with results
                start_new_session=True,  # the parent handles Ctrl-C
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(paths),
                    # Idle threads sleep: those that spin compete with other processes (decision 4).
                    "OMP_NUM_THREADS": str(threads),
                    "OMP_WAIT_POLICY": "PASSIVE",
                    **variables,
                    _MARK: token,
                },
            )
        self._channel = Channel(parent_socket, _TO_TRANSFER)
        self._message: bytes | None = None
        self.send(dump((paths, remapped or {}, spec)))

    def fileno(self) -> int:
        """Returns the number of the socket, for functions that wait for several ones."""
        return self._channel.fileno()

    def send(self, message: bytes) -> None:
        """Sends a pickled message; ends a process that does not take it."""
        try:
            self._channel.send(message)
        except OSError:
            self.end()  # `receive` reports the death

    def has_message(self) -> bool:
        """Returns whether `receive` has a message, without waiting for one."""
        if self._message is None:
            try:
                self._message = self._channel.take()
            except InvalidMessageError:
                self._message = self._died("sent an invalid message")
            except (EOFError, OSError):
                cause = self._cause()
                self._message = self._died(OVERDUE if self._is_late() else cause)
        # From outside: a stopped process runs neither its alarm nor faulthandler's thread.
        if self._message is None and self._is_late(OUTSIDE):
            self.end()
            self._message = self._died(OVERDUE)
        return self._message is not None

    def receive(self) -> bytes:
        """Returns the next pickled message; if the process has ended, the cause of its death."""
        while not self.has_message():
            wait([self.fileno()], INTERVAL)
        message, self._message = self._message, None
        assert message is not None
        return message

    def end(self) -> int:
        """Kills the process and all processes that its stages have started; returns its status."""
        # PermissionError on macOS: all have ended.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        status = self._process.wait()
        kill_marked(self._mark)  # those that a stage has started in sessions of their own
        return status

    def _is_late(self, grace: float = 0.0) -> bool:
        """Returns whether the worker has been late for some seconds; see `be_watched`."""
        return 0 < self._memory.late_at[0] < monotonic() - grace

    def _died(self, cause: str) -> bytes:
        return dump(("died", self._memory.death(cause)))

    def _cause(self) -> str:
        """Returns how the process ended; kills it if it only closed its socket."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_PATIENCE)
        status = self.end()
        if status < 0:
            return f"was killed by signal {-status} (9 is often lack of memory)"
        return f"ended with status {status}"


# -- in the process --------------------------------------------------------------------------------


def connected() -> Channel:
    """Returns the connection of this worker to its parent, and ends the worker with the parent."""
    open_standard_streams()
    end_with_parent()
    show_log()
    return Channel(socket.socket(fileno=int(sys.argv[1])))


def end_with_parent() -> None:
    """Makes this process end when its parent ends or is killed, and ignore Ctrl-C."""
    signal.signal(signal.SIGINT, lambda *_: None)  # any KeyboardInterrupt here is raised by a stage
    # Linux only, and immediate; the thread covers other systems within a second.
    die_with_parent()
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()


def show_log() -> None:
    """Writes log messages of this process to its standard error."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("leporello").setLevel(logging.INFO)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    # Not sys.exit: threads of a model could block it, and nobody waits for this process any more.
    os._exit(0)
