"""Runs the command line as a user does, and checks how it ends."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from leporello.core.environment.platform import cores


@dataclass(frozen=True)
class Done:
    """Result of a command."""

    status: int | None  # exit status: negative after a signal, None after the deadline
    stdout: str  # its standard output
    stderr: str  # its standard error


def leporello(folder: Path, *arguments: str, shell: str = 'exec "$@"', seconds: float = 60) -> Done:
    """Runs a command in a folder, with its cache there.

    Args:
        folder: The folder.
        arguments: Verb, arguments and options.
        shell: Commands of bash, in which `"$@"` is the command line.
        seconds: Its deadline on a machine that is not busier than `slowness` allows.
    """
    variables = {"LEPORELLO_CACHE": str(folder / "cache"), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    try:
        process = subprocess.run(
            ["/bin/bash", "-c", shell, "bash", sys.executable, "-m", "leporello", *arguments],
            cwd=folder, env=os.environ | variables, capture_output=True, stdin=subprocess.DEVNULL,
            text=True, errors="replace", timeout=seconds * slowness(), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return Done(None, "", str(late))
    return Done(process.returncode, process.stdout, process.stderr)


def slowness() -> float:
    """Returns how much longer commands may take than with two waiting processes for each core."""
    # Each step of niceness leaves a process 1.25 times less of a core (sched(7)).
    return max(1.0, os.getloadavg()[0] / cores() / 2) * 1.25 ** os.nice(0)


def wrong(done: Done, *statuses: int) -> str | None:
    """Returns a line on the fault in a command's result, or None.

    Args:
        done: Result of the command.
        statuses: Correct exit statuses.
    """
    if done.status is None:
        return f"did not end: {_last(done.stderr)}"
    if "Traceback (most recent" in done.stderr or "Exception ignored" in done.stderr:
        return f"traceback: {_last(done.stderr)}"
    if done.status not in statuses:
        return f"status {done.status}, not {' or '.join(map(str, statuses))}: {_last(done.stderr)}"
    is_silent = done.status == 2 and not done.stderr.strip()
    return "refused without a reason" if is_silent else None


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["(no message)"])[-1][:300]


@cache
def scratch() -> Path:
    """Returns a folder that all cases share; it is removed when the program ends."""
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
