"""The command line: one file a verb or theme, over the functions of the same names.

It may touch all rooms, imports them inside functions so that `--help` is quick, and is the only one
that imports rich. Begin with `run`; `options` has what verbs take in common, `display/` draws what
they return.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from leporello.cli import (
    ask,
    benchmarks,
    cache,
    compare,
    explain,
    export,
    new,
    run,
    serve,
    train,
    tune,
)
from leporello.cli import list as listing
from leporello.cli.display.progress import progress_bar
from leporello.cli.options import stderr
from leporello.core import __version__
from leporello.core.environment import signals
from leporello.core.errors import Interrupted, UserError
from leporello.engine.progress import show_progress_with

__all__ = ["app", "main"]

_USERS_MISTAKE, _INTERRUPTED = 2, 130  # the latter is typer's

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its help takes 0.15 s to import
    help="Answers from documents far longer than a model can read.",
)
_VERBS = (
    run.run, run.check, run.plan, new.new, listing.list_things, listing.models,
    listing.schema, ask.ask, ask.extract, serve.serve, serve.mcp,
    explain.explain, export.score, compare.table, compare.compare, compare.report, compare.watch,
    export.export, export.track, train.train, train.examples, tune.tune, benchmarks.fetch,
    benchmarks.submit, benchmarks.analyze,
)  # fmt: skip
for _verb in _VERBS:
    # The whole first paragraph, which would be cut after some words.
    _short = " ".join((_verb.__doc__ or "").partition("\n\n")[0].split())
    app.command(name=_verb.__name__.removesuffix("_things"), short_help=_short)(_verb)
app.add_typer(cache.app, name="cache")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"leporello {__version__}")
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
]


@app.callback()
def _options(version: _Version = False) -> None:
    pass


def main() -> None:
    """Runs the command line; the user's mistakes end with status 2 and no traceback."""
    # One thread a process, and idle threads that sleep: a second busy process would otherwise
    # slow torch down thirtyfold. A user who knows better sets these.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for stream in (sys.stdout, sys.stderr):  # a document may hold what a terminal cannot show
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _in_one_line
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("leporello").setLevel(logging.INFO)
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it tells every retry
    sys.unraisablehook = _end_if_interrupted
    show_progress_with(progress_bar)
    try:
        signals.raise_interrupted()
        _run()
    except Interrupted:
        stderr().print("interrupted")
        _leave(signals.status())


def _run() -> NoReturn:
    try:
        with _exits_told():
            app()
    except KeyboardInterrupt:
        stderr().print("interrupted")
        _leave(signals.status())
    except UserError as error:
        stderr().print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        _leave(_USERS_MISTAKE)
    except SystemExit as end:
        _leave(signals.status() if end.code == _INTERRUPTED else end.code)
    _leave(0)


def _leave(status: object) -> NoReturn:
    """Ends the process, also if a stage left threads behind for which Python would wait."""
    own = threading.current_thread()
    left = [t.name for t in threading.enumerate() if t is not own and not t.daemon]
    number = status if isinstance(status, int) else int(status is not None)
    with suppress(OSError):  # a pipe whose reader has gone, as Python's own end tells
        sys.stdout.flush()
    signals.keep_status(number)
    if not left:
        raise SystemExit(status)
    stderr().print(f"left behind, and ended: threads {', '.join(left)}", highlight=False)
    os._exit(number)


@contextmanager
def _exits_told() -> Iterator[None]:
    """Has `os._exit` in this process raise: a stage would end it with status 0, and no word."""
    own, leave = os.getpid(), os._exit

    def refuse(status: int) -> NoReturn:
        if os.getpid() != own:  # a fork that ends
            leave(status)
        raise SystemExit(f"os._exit({status}) was called")

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = leave


def _end_if_interrupted(raised: sys.UnraisableHookArgs) -> None:
    """Ends where Python would go on: a signal came while an object was taken apart."""
    if isinstance(raised.exc_value, Interrupted):
        signals.leave()
    sys.__unraisablehook__(raised)


def _in_one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: object = None
) -> str:
    del line  # of the source, which says nothing more
    return f"{filename}:{lineno}: {category.__name__}: {message}\n"
