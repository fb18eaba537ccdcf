"""Processes that start at once: forks of one that has imported what the command line imports.

Starting Python and importing costs over a second of computing, which the tests would pay for each
command; torch and scikit-learn, which few of them need, are left to those.
What is forked has computed nothing yet and has no second thread, is given its own arguments,
environment, folder and streams, and ends as any process does.
"""

from __future__ import annotations

import atexit
import gc
import json
import logging
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector, SelectorKey

_ENOUGH = 1 << 20  # bytes that a request has at most
# Read when it is wanted, and not by a library that is imported: may differ from the server's.
_READ_LATE = ("COLUMNS", "LEPORELLO_", "PYTEST_", "SHELF", "MY_KEY", "OPENAI_API_KEY")
_IMPORTED = (
    "leporello.cli", "leporello.api", "leporello.runs.run", "leporello.chunkers",
    "leporello.retrievers", "leporello.readers", "leporello.combiners",
)  # fmt: skip


class ForkServer:
    """A process that forks itself for every command."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._started_with = dict(os.environ)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
            )

    def serves(self, environment: dict[str, str]) -> bool:
        """Tells whether a process with an environment may be a fork of the server."""
        differing = dict(environment.items() ^ self._started_with.items())
        return all(name.startswith(_READ_LATE) for name in differing)

    def run(
        self, arguments: list[str], folder: Path | None, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Runs a script to its end, as `subprocess.run` does."""
        request = json.dumps([arguments, str(folder or Path.cwd()), environment]).encode()
        with ExitStack() as stack:
            out, err = (stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2))
            ended, ends = map(stack.enter_context, socket.socketpair())
            files = [file.fileno() for file in (out, err, ends)]
            socket.send_fds(self._socket, [request], files)
            ends.close()
            status = int(ended.recv(20))
            texts = [(file.seek(0), file.read())[1] for file in (out, err)]
        return subprocess.CompletedProcess(arguments, status, *texts)

    def close(self) -> None:
        """Ends the server."""
        self._socket.close()
        self._process.wait()


def _serve(requests: socket.socket) -> None:
    """Forks for each request, and returns in a fork, which is to run its script."""
    with DefaultSelector() as selector:
        selector.register(requests, EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not requests:
                    _tell(key, selector)
                    continue
                message, files, _, _ = socket.recv_fds(requests, _ENOUGH, 3)
                if not message:
                    sys.exit()
                if not (worker := os.fork()):
                    requests.close()
                    _become(message, files)
                    return
                selector.register(os.pidfd_open(worker), EVENT_READ, (worker, files.pop()))
                for file in files:
                    os.close(file)


def _tell(key: SelectorKey, selector: DefaultSelector) -> None:
    """Sends the exit status of a process that has ended."""
    worker, answer = key.data
    selector.unregister(key.fileobj)
    os.write(answer, b"%d" % os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))
    for file in (answer, key.fd):
        os.close(file)


def _become(message: bytes, files: list[int]) -> None:
    arguments, folder, environment = json.loads(message)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, *files[:2])):
        os.dup2(file, number)
    for file in (nothing, *files):
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments


def _end(error: BaseException | None) -> None:
    """Ends as the interpreter does, without taking apart what was imported."""
    status = 0
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    elif error is not None:
        traceback.print_exception(error)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    for module in _IMPORTED:
        import_module(module)
    gc.freeze()  # a collection in a fork would copy all of it
    _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except BaseException as error:
        _end(error)
    _end(None)
