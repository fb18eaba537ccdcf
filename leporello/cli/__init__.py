"""The command line: one file per verb or theme, over the functions of the same names.

It may use all other packages, imports them inside functions so that `--help` is quick, and is the
only package that imports rich. Begin with `run`; `options` has the shared options, and `display/`
formats results for the terminal.
"""

from __future__ import annotations

import gc
import logging
import os
import shlex
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from leporello.cli.options import print_plain, program, progress_bar, stderr
from leporello.core import __version__
from leporello.core.environment import process
from leporello.core.environment.process import open_standard_streams, output_error
from leporello.core.errors import Interrupted, UserError, is_out_of_memory, reworded, visible
from leporello.engine.progress import show_progress_with

__all__ = ["application", "main"]

_FAILED, _USERS_MISTAKE, _INTERRUPTED = 1, 2, 130  # the latter is typer's
# Module and function of each verb by group, in the order of `--help`.
_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Ask": {"ask": "ask:ask", "serve": "ask:serve", "extract": "ask:extract", "mcp": "ask:mcp"},
    "Experiment": {
        "run": "run:run", "plan": "run:plan", "table": "compare:table",
        "compare": "compare:compare", "report": "compare:report", "tune": "train:tune",
        "train": "train:train", "examples": "train:examples", "fetch": "export:fetch",
    },
    "Inspect": {
        "explain": "explain:explain", "score": "explain:score", "analyze": "explain:analyze",
        "list": "list:list_things", "check": "run:check", "schema": "list:schema",
        "models": "list:models", "watch": "compare:watch", "cache": "list:cache",
    },
    "Share": {
        "export": "export:export", "submit": "export:submit", "track": "export:track",
        "new": "new:new",
    },
}  # fmt: skip
_VERBS: Mapping[str, str] = {name: at for verbs in _GROUPS.values() for name, at in verbs.items()}
_WHOLE = 1000  # characters of a verb's first paragraph in the help
_BEGIN = """\
Leporello answers questions about documents far longer than a model can read.

  {0} ask FILE "QUESTION"       answer a question about your file
  {0} serve FILE                the same in the browser
  {0} run default --limit 20    run and score the sample task

{0} --help lists all commands.
"""


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"leporello {__version__}")
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
]


def _options(
    context: typer.Context,
    version: _Version = False,  # noqa: ARG001 -- its callback shows it
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(_BEGIN.format(shlex.join(program())), nl=False)


class _Verbs(TyperGroup):
    """Group of all verbs, whose help lists them by theme."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 -- as typer
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = reworded(error.message)
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002 -- as typer
        for title, names in _GROUPS.items():
            verbs = [(name, self.commands[name]) for name in names if name in self.commands]
            with formatter.section(title):
                formatter.write_dl(
                    [(name, verb.get_short_help_str(_WHOLE)) for name, verb in verbs]
                )


def application(words: Sequence[str] = ()) -> typer.Typer:
    """Returns the command line with the verb that `words` begin with, or else with all verbs."""
    app = typer.Typer(
        cls=_Verbs,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # its help takes 0.15 s to import
        help="Answer questions about documents far longer than a model can read.",
    )
    app.callback()(_options)
    for name in words[:1] if words and words[0] in _VERBS else _VERBS:
        module, _, function = _VERBS[name].partition(":")
        verb = getattr(import_module(f"leporello.cli.{module}"), function)
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name)
        else:  # the complete first paragraph, which typer would cut after some words
            paragraph = " ".join((verb.__doc__ or "").partition("\n\n")[0].split())
            app.command(name=name, short_help=paragraph)(verb)
    return app


class _SafeFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def main() -> None:
    """Runs the command line; the user's mistakes end with status 2 and without a traceback."""
    open_standard_streams()
    gc.set_threshold(10_000)  # not 700: collecting while modules are imported takes 0.05 s
    # Idle threads must sleep: beside a busy process, torch on two threads fell from 47 to 1.6
    # tokens per second (decision 4). The user's environment wins.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Otherwise tokenizers start a thread per core, and warn if a stage forks afterwards.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    warnings.formatwarning = _in_one_line
    handler = logging.StreamHandler()
    handler.setFormatter(_SafeFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("leporello").setLevel(logging.INFO)
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it reports every retry
    sys.unraisablehook = _end_if_interrupted
    show_progress_with(progress_bar)
    try:
        process.raise_interrupted()
        _run()
    except Interrupted:
        stderr().print("interrupted")
        _leave(process.status())


def _run() -> NoReturn:
    try:
        with _reported_exits():
            application(sys.argv[1:])()
    except KeyboardInterrupt:
        stderr().print("interrupted")
        _leave(process.status())
    except UserError as error:
        print_plain(stderr(), str(error), "red")
        _leave(_USERS_MISTAKE)
    except Exception as error:
        lack = "there is not enough memory: " if is_out_of_memory(error) else ""
        if not lack and not isinstance(error, OSError | ImportError):
            raise
        # Without the libraries of `stderr()`, for which memory or files may be missing too.
        reason = f"{lack}{error}".removesuffix(": ")
        sys.stderr.write(visible(f"the command cannot continue: {reason}\n"))
        _leave(_FAILED)
    except SystemExit as end:
        _leave(process.status() if end.code == _INTERRUPTED else end.code)
    _leave(0)


def _leave(status: object) -> NoReturn:
    """Ends the process, also if threads of a stage still run, for which Python would wait."""
    current = threading.current_thread()
    running = [t.name for t in threading.enumerate() if t is not current and not t.daemon]
    number = status if isinstance(status, int) else int(status is not None)
    with suppress(OSError):  # the program at the end of the pipe has exited
        sys.stdout.flush()
    if error := output_error():
        print_plain(stderr(), error, "red")
        status = number = number or _FAILED
    process.keep_status(number)
    if not running:
        raise SystemExit(status)
    stderr().print(f"stopped threads that still ran: {', '.join(running)}", highlight=False)
    os._exit(number)


@contextmanager
def _reported_exits() -> Iterator[None]:
    """Makes `os._exit` raise, so that a stage cannot end this process without a message."""
    this, exit_now = os.getpid(), os._exit

    def refuse(status: int) -> NoReturn:
        if os.getpid() != this:  # a fork may exit
            exit_now(status)
        raise SystemExit(f"os._exit({status}) was called")

    # A stage under `ask` then fails like any other. C's `exit` and SIGKILL cannot be replaced: they
    # end a command with their own status (decision 40).
    os._exit = refuse
    try:
        yield
    finally:
        os._exit = exit_now


def _end_if_interrupted(raised: sys.UnraisableHookArgs) -> None:
    """Ends the process if a signal arrived in a finalizer, where Python ignores exceptions."""
    if isinstance(raised.exc_value, Interrupted):
        process.leave()
    sys.__unraisablehook__(raised)


def _in_one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: object = None
) -> str:
    del line  # the line of source adds nothing
    return f"{filename}:{lineno}: {category.__name__}: {visible(str(message))}\n"
