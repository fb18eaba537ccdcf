"""Child processes, connected to this process by an inherited socket.

A child is started as a new interpreter, since a fork of a process that runs models can hang. It is
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
from contextlib import suppress
from pathlib import Path

from leporello.core.environment.platform import die_with_parent, kill_marked
from leporello.core.environment.process import open_standard_streams
from leporello.executors.channel import Channel

_INTERVAL = 1.0  # seconds between checks whether the parent is alive
_TO_SEND = 30  # seconds in which a process must take a message
_TO_STOP = 5.0  # seconds that a process may take to end its own processes
# The socket closes shortly before the status exists, and the status names the signal.
_PATIENCE = 0.2  # seconds to wait for a process that has closed its socket
_MARK = "LEPORELLO_CHILD"  # environment variable that the processes of a child inherit


class ChildProcess:
    """Child process.

    Attributes:
        channel: Connection to the process; its first message contains the module paths.
    """

    def __init__(self, main: str, environment: dict[str, str] | None = None) -> None:
        """Starts `module:function`, which calls `connected` first, with more environment variables.

        Raises:
            OSError: The process cannot be started.
        """
        parent_socket, child_socket = socket.socketpair()
        module, _, function = main.partition(":")
        paths = _module_paths()
        token = uuid.uuid4().hex
        self._mark = f"{_MARK}={token}"
        with child_socket:
            number = child_socket.fileno()
            # Not `multiprocessing`, which runs the user's script again in each child (decision 11).
            self._process = subprocess.Popen(  # noqa: S603 -- this project's own code
                [sys.executable, "-c", f"from {module} import {function} as f; f()", str(number)],
                pass_fds=[number],
                # A debugger in a worker would wait for input that nobody sees; `--unsupervised`
                # runs plug-ins in the command's own process (decision 40).
                stdin=subprocess.DEVNULL,
                stdout=2,  # output of plug-ins must not mix with results
                start_new_session=True,  # the parent handles Ctrl-C
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(paths),
                    **(environment or {}),
                    _MARK: token,
                },
            )
        self.channel = Channel(parent_socket, _TO_SEND)
        with suppress(OSError):  # the process has ended; the next read reports it
            self.channel.send(paths)

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    def stop(self) -> int:
        """Terminates the process, and kills it if it does not end."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_TO_STOP)
        return self.end()

    def end(self) -> int:
        """Kills the process and all processes that its stages have started; returns its status."""
        with suppress(
            ProcessLookupError, PermissionError
        ):  # PermissionError on macOS: all have ended
            os.killpg(self.pid, signal.SIGKILL)
        status = self._process.wait()
        kill_marked(self._mark)  # those that a stage has started in sessions of their own
        return status

    def cause(self) -> str:
        """Returns how the process ended; kills it if it only closed its socket."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_PATIENCE)
        status = self.end()
        if status < 0:
            return f"was killed by signal {-status} (9 is often lack of memory)"
        return f"ended with status {status}"


def connected() -> Channel:
    """Returns the connection of this child process to its parent.

    After this call the process ends when the parent ends.
    """
    open_standard_streams()
    end_with_parent()
    show_log()
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    sys.path[:] = channel.receive()
    return channel


def end_with_parent() -> None:
    """Makes this process end when its parent ends or is killed, and ignore Ctrl-C."""
    signal.signal(signal.SIGINT, lambda *_: None)  # any KeyboardInterrupt here is raised by a stage
    # Linux only, and immediate; the thread below covers other systems within a second.
    die_with_parent()
    # Only Linux ends a child with its parent; elsewhere this thread checks.
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()


def _module_paths() -> list[str]:
    """Returns the module paths of this process, for a child process."""
    return [entry or str(Path.cwd()) for entry in sys.path]


def show_log() -> None:
    """Writes log messages of this process to its standard error."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("leporello").setLevel(logging.INFO)


def _end_with(parent: int) -> None:
    """Ends this process when its parent has ended."""
    # Only Linux can kill a child with its parent, so other systems watch the parent's id.
    while os.getppid() == parent:
        time.sleep(_INTERVAL)
    # Not sys.exit: threads of a model could block it, and nobody waits for this process any more.
    os._exit(0)
