"""The command line as a user starts it, and what is wrong with how it ended, whatever it did."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_MEGABYTES = 1_500  # that a tiny run may take
_GRACE = 5.0  # seconds in which what a command has started ends after it


@dataclass(frozen=True)
class Done:
    """How a command ended.

    Attributes:
        status: Exit status; negative if a signal ended it, None if its deadline passed.
        stdout: What it printed.
        stderr: What it told.
        seconds: Time that it took.
        megabytes: Memory of its largest process.
        is_left: Whether a process that it had started outlived it.
    """

    status: int | None
    stdout: str
    stderr: str
    seconds: float
    megabytes: float
    is_left: bool


class Started:
    """A command under way, in a process group of its own."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self._streams = [tempfile.TemporaryFile("w+", errors="replace") for _ in range(2)]  # noqa: SIM115 -- closed by `end`
        self._began = time.monotonic()
        self._ended: tuple[int, float] | None = None
        out, err = self._streams
        own = {"LEPORELLO_CACHE": str(folder / "cache"), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "leporello", *arguments],
            cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True,
            env=os.environ | own | environment,
        )  # fmt: skip

    @property
    def number(self) -> int:
        """The process."""
        return self._process.pid

    def lasts(self, seconds: float) -> bool:
        """Waits for its end; returns whether it has not come in so many seconds."""
        end = time.monotonic() + seconds
        while self._ended is None:
            process, status, usage = os.wait4(self.number, os.WNOHANG)
            if process:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                self._ended = self._process.returncode, usage.ru_maxrss / 1024
            elif time.monotonic() >= end:
                return True
            else:
                time.sleep(0.005)
        return False

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal, unless it has ended."""
        if self._ended is None:
            os.kill(self.number, number)

    def end(self, seconds: float = 60) -> Done:
        """Waits for its end, and for that of what it has started; its deadline ends all of it."""
        is_late = self.lasts(seconds)
        took = time.monotonic() - self._began
        is_left = not is_late and self._is_left()
        with suppress(ProcessLookupError):
            os.killpg(self.number, signal.SIGKILL)
        self.lasts(_GRACE)
        status, megabytes = self._ended or (None, 0.0)
        texts = []
        for stream in self._streams:
            stream.seek(0)
            texts.append(stream.read())
            stream.close()
        return Done(None if is_late else status, texts[0], texts[1], took, megabytes, is_left)

    def _is_left(self) -> bool:
        end = time.monotonic() + _GRACE
        while time.monotonic() < end:
            try:
                os.killpg(self.number, 0)
            except ProcessLookupError:
                return False
            time.sleep(0.01)
        return True


def leporello(folder: Path, *arguments: str, seconds: float = 60, **environment: str) -> Done:
    """Runs a command in a folder, with a cache of its own there.

    Args:
        folder: The folder.
        arguments: Verb, arguments, options.
        seconds: Its deadline.
        environment: Variables.
    """
    return Started(folder, *arguments, **environment).end(seconds)


def wrong(done: Done, *statuses: int) -> str | None:
    """Returns what is wrong with how a command ended, in a line.

    Args:
        done: How it did.
        statuses: Exit statuses that are right.
    """
    if done.status is None:
        return f"did not end in {done.seconds:.0f} s: {_last(done.stderr)}"
    if "Traceback (most recent" in done.stderr or "Exception ignored" in done.stderr:
        return f"traceback: {_last(done.stderr)}"
    if done.status not in statuses:
        return f"status {done.status}, not {' or '.join(map(str, statuses))}: {_last(done.stderr)}"
    if done.status == 2 and not done.stderr.strip():
        return "refused without a word"
    if done.megabytes > _MEGABYTES:
        return f"took {done.megabytes:.0f} MB"
    return "left a process behind" if done.is_left else None


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["(nothing told)"])[-1][:300]


@cache
def scratch() -> Path:
    """Returns a folder for what all cases share, which is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def keep_scratch() -> None:
    """Has that folder stay: what fails is shown with it."""
    atexit.unregister(shutil.rmtree)
