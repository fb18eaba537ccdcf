"""Runs the command line in this process, or as a process that a test can kill."""

import importlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO
from unittest.mock import patch

import typer

from leporello.cache import dependencies
from leporello.cli import application, main
from leporello.core.environment import process

ROOT = Path(__file__).resolve().parents[2]
HERE = ("--workers", "0")  # starting a worker takes longer than the runs of the tests
GOLDEN = ROOT / "tests" / "golden"
_LIBRARIES = (sys.prefix, sys.base_prefix, str(ROOT))
_PATH = (*sys.path,)  # as in a new process: without folders of plug-ins that tests have loaded


def command(*arguments: str | Path) -> list[str]:
    """Returns the command line that starts a process."""
    return [sys.executable, str(ROOT / "run_pipeline.py"), *map(str, arguments)]


def leporello(
    *arguments: str | Path, status: int = 0, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command in this process; checks its exit status and that it prints no traceback."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    words = command(*arguments)[1:]
    code = 0
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        stack.enter_context(_command_state(words, folder or Path.cwd(), err))
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    process = subprocess.CompletedProcess(words, code, *texts)
    assert process.returncode == status, f"{process.stdout}\n{process.stderr}"
    assert "Traceback" not in process.stderr
    return process


@contextmanager
def _command_state(words: list[str], folder: Path, err: TextIO) -> Iterator[None]:
    """Gives a command the state of a new process, and restores the state of this process."""
    logs, handlers = logging.getLogger(), {n: signal.getsignal(n) for n in process.SIGNALS}
    handled, modules = logs.handlers, {*sys.modules}
    logs.handlers = []
    dependencies._warn_of_reuse.cache_clear()
    with (
        chdir(folder),
        patch.dict(os.environ, {"COLUMNS": "200"}),
        patch.multiple(sys, argv=words, path=[*_PATH], unraisablehook=sys.unraisablehook),
        patch.multiple(process, _first=0, _is_command=False),
        patch.multiple(warnings, formatwarning=None, showwarning=partial(_show, err)),
        patch("os._exit", _raise_exit),
    ):
        try:
            yield
        finally:
            logs.handlers = handled
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for name in {*sys.modules} - modules:
                if not str(getattr(sys.modules[name], "__file__", "")).startswith(_LIBRARIES):
                    del sys.modules[name]  # a plug-in, which the next command must import again
            importlib.invalidate_caches()


def _show(err: TextIO, message: Warning | str, *details: Any) -> None:
    err.write(warnings.formatwarning(message, *details[:3]))


def _raise_exit(status: int) -> NoReturn:
    raise SystemExit(status)


def verbs(group: Any = None, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the verbs of the command line, such as `cache gc`, with their commands."""
    group = group or typer.main.get_command(application())
    for name, verb in group.commands.items():
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{before}{name} ")
        else:
            yield f"{before}{name}", verb


def options_of(verb: Any) -> set[str]:
    """Returns the options of a command."""
    return {name for p in verb.params for name in (*p.opts, *p.secondary_opts)}


def write_files(folder: Path, files: Mapping[str, str | Iterable[Mapping[str, Any]]]) -> None:
    """Writes files by name: texts as they are, rows as JSON Lines."""
    for name, content in files.items():
        lines = [content] if isinstance(content, str) else [f"{json.dumps(r)}\n" for r in content]
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(lines), encoding="utf-8")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def until(is_true: Callable[[], bool], process: subprocess.Popen[Any] | None = None) -> None:
    """Waits until a condition is true or a process ends; fails after ten minutes."""
    end = time.monotonic() + 600
    while not is_true() and (process is None or process.poll() is None):
        assert time.monotonic() < end, "the condition was not true within ten minutes"
        time.sleep(0.005)
