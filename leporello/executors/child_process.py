"""A process beside this one that works for it, over a socket that it inherits.

It is started afresh rather than forked, since forking a process that runs models can hang it;
and by name rather than by multiprocessing, which would run the user's own script once more.
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
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from leporello.core.environment.platform import die_with_parent

_LOOK = 1.0  # seconds between looks at the process that asks
_TO_STOP = 5.0  # seconds that a process may take to end what it has started
_PATIENCE = 0.2  # seconds for a process that closed its end to end


class ChildProcess:
    """A process beside this one.

    Attributes:
        connection: Pipe to the process; the first message on it holds this process's paths of
            modules.
    """

    def __init__(self, main: str, environment: dict[str, str] | None = None) -> None:
        """Starts it.

        Args:
            main: `module:function`, which calls `connected` first.
            environment: Variables that it has besides.

        Raises:
            OSError: It cannot be started.
        """
        ours, theirs = socket.socketpair()
        module, _, function = main.partition(":")
        paths = _module_paths()
        with theirs:
            number = theirs.fileno()
            # Not `multiprocessing`, which runs a user's script anew in each child (decision 11).
            self._process = subprocess.Popen(  # noqa: S603 -- this project's own code
                [sys.executable, "-c", f"from {module} import {function} as f; f()", str(number)],
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a plug-in prints is no result
                start_new_session=True,  # Ctrl-C is for the process that asks
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **(environment or {})},
            )
        self.connection = Connection(ours.detach())
        with suppress(ConnectionError):  # it has ended already, as reading will show
            self.connection.send(paths)

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def stop(self) -> int:
        """Asks the process to end, and kills it if it does not."""
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_TO_STOP)
        return self.end()

    def end(self) -> int:
        """Kills the process, with those of its group that it has left, and returns its status."""
        with suppress(ProcessLookupError, PermissionError):  # macOS: all of them have ended
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()

    def cause(self) -> str:
        """Says how the process ended; one that only closed its end is killed."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_PATIENCE)
        status = self.end()
        if status < 0:
            return f"was killed by signal {-status} (9 is often lack of memory)"
        return f"ended with status {status}"


def connected() -> Connection:
    """Returns the connection to the process that asks; for the process beside it.

    From here on this process ends with that one.
    """
    end_with_parent()
    show_log()
    connection = Connection(int(sys.argv[1]))
    sys.path[:] = connection.recv()
    return connection


def end_with_parent() -> None:
    """Has this process end when the one that started it is gone, killed perhaps; not by Ctrl-C."""
    signal.signal(signal.SIGINT, lambda *_: None)  # a KeyboardInterrupt here is a stage's own
    die_with_parent()
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()


def _module_paths() -> list[str]:
    """Returns where this process finds modules, for one that is to find the same."""
    return [entry or str(Path.cwd()) for entry in sys.path]


def show_log() -> None:
    """Has what this process tells people appear on its standard error."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("leporello").setLevel(logging.INFO)


def _end_with(parent: int) -> None:
    """Ends this process when the one that asks is gone, killed perhaps."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(0)
