"""The command line as a user starts it, and what is wrong with how it ended, whatever it did."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Done:
    """How a command ended.

    Attributes:
        status: Exit status; negative if a signal ended it, None if its deadline passed.
        stdout: What it printed.
        stderr: What it told.
    """

    status: int | None
    stdout: str
    stderr: str


def leporello(folder: Path, *arguments: str, seconds: float = 60) -> Done:
    """Runs a command in a folder, with a cache of its own there.

    Args:
        folder: The folder.
        arguments: Verb, arguments, options.
        seconds: Its deadline.
    """
    own = {"LEPORELLO_CACHE": str(folder / "cache"), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "leporello", *arguments], cwd=folder, env=os.environ | own,
            capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace",
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return Done(None, "", str(late))
    return Done(done.returncode, done.stdout, done.stderr)


def wrong(done: Done, *statuses: int) -> str | None:
    """Returns what is wrong with how a command ended, in a line.

    Args:
        done: How it did.
        statuses: Exit statuses that are right.
    """
    if done.status is None:
        return f"did not end: {_last(done.stderr)}"
    if "Traceback (most recent" in done.stderr or "Exception ignored" in done.stderr:
        return f"traceback: {_last(done.stderr)}"
    if done.status not in statuses:
        return f"status {done.status}, not {' or '.join(map(str, statuses))}: {_last(done.stderr)}"
    is_silent = done.status == 2 and not done.stderr.strip()
    return "refused without a word" if is_silent else None


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
