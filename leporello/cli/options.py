"""Shared options, consoles and progress bar of the verbs of the command line."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

import typer

from leporello.core.annotations import docstring
from leporello.core.environment.input_limits import SECONDS
from leporello.core.errors import UserError, visible
from leporello.jobs.options import JobOptions
from leporello.storage import on_disk, to_path

if TYPE_CHECKING:
    from rich.console import Console

    from leporello.engine.progress import ProgressDisplay

INTERRUPTED = 130  # exit status, as typer's
_CONTROLS = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # JSON escapes those below space


def _set_data_directory(data: Path | None) -> Path | None:
    """Sets the variable that tasks read; a run's config does not contain its data directory."""
    if data is not None:
        try:
            # Absolute, since workers may run in another folder.
            os.environ["LEPORELLO_DATA"] = str(data.expanduser().absolute())
        except RuntimeError:
            raise UserError(f"--data {data}: no such user") from None
    return data


def _set_unsupervised(is_requested: bool) -> None:
    """Sets the variable that executors read; a run's config does not contain it."""
    if is_requested:
        os.environ["LEPORELLO_UNSUPERVISED"] = "1"


def run_at_argument(text: str) -> Path:
    """Returns the directory of a run, downloaded if it is a URL."""
    from leporello.storage.runs import run_at

    return run_at(text)


RunAt = Annotated[
    Path, typer.Argument(help="Directory or URL of a run.", parser=run_at_argument, metavar="RUN")
]
RunsAt = Annotated[
    list[Path],
    typer.Argument(help="Directories or URLs of runs.", parser=run_at_argument, metavar="RUN"),
]
Files = Annotated[
    list[str], typer.Argument(help="Files, folders, patterns or URLs.", metavar="FILE")
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Read official data from this folder. [default: LEPORELLO_DATA, or ./data]",
        show_default=False,
        parser=to_path,
        metavar="PATH|URL",
        callback=_set_data_directory,
        is_eager=True,
    ),
]
Unsupervised = Annotated[
    bool,
    typer.Option(
        "--unsupervised",
        envvar="LEPORELLO_UNSUPERVISED",
        help="With --workers 0, run plug-in classes in this process too, for a debugger.",
        show_envvar=False,
        callback=_set_unsupervised,
    ),
]


def out_option(help_: str = "", *, show_default: bool = False) -> Any:  # noqa: ANN401 -- typer returns Any
    """Returns the option `--out` of a verb that writes to this machine's disk."""
    return typer.Option(
        "--out", help=help_, show_default=show_default, parser=on_disk, metavar="PATH"
    )


def _workers(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdecimal():
        raise UserError(f"--workers {text}: must be a number from 0, or auto")
    return int(text)


def _share(text: str) -> float | None:
    """Returns a number of examples, or a share below 1; None if the text is empty."""
    if not text:
        return None
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not share >= 0 or (share >= 1 and (text.endswith("%") or share % 1)):
        raise UserError(
            f"--max-failures {text}: must be a number of examples (10) or a share (0.05 or 5%)"
        )
    return share


_REPEATED = ("tasks", "config", "overrides", "metrics")  # options that may be given several times
# Declarations of options that do not follow from their names, types and defaults.
_DECLARATIONS: Mapping[str, Any] = {
    "pipelines": typer.Argument(),
    "tasks": typer.Option("--task", metavar="NAME"),
    "config": typer.Option("--config", metavar="FILE"),
    "pipeline": typer.Option("--pipeline", metavar="NAME"),
    "overrides": typer.Option("--set", metavar="PATH=VALUE"),
    "cached": typer.Option("--no-cache", help="Do not read or write the cache."),
    "model": typer.Option("--model", metavar="NAME"),
    "metrics": typer.Option("--metric", metavar="NAME|FILE.py:CLASS|YAML"),
    "suite": typer.Option("--suite", metavar="NAME"),
    "limit": typer.Option("--limit", min=1),
    "out": typer.Option("--out", show_default=False, parser=to_path, metavar="PATH|URL"),
    "address": typer.Option("--address", metavar="auto|HOST:PORT"),
    "workers": typer.Option("--workers", parser=_workers, metavar="N|auto"),
    "selectors": typer.Option("--selectors", min=0),
    "worker_gpus": typer.Option("--worker-gpus", metavar="X"),
    "threads": typer.Option("--threads", min=1),
    "max_active": typer.Option("--max-active", min=1),
    "window": typer.Option("--window", min=1),
    "shard_examples": typer.Option("--shard-examples", min=1),
    "shard_bytes": typer.Option("--shard-bytes", min=1),
    "example_timeout": typer.Option("--example-timeout", min=0.001, max=SECONDS, metavar="SECONDS"),
    "max_failures": typer.Option("--max-failures", parser=_share, metavar="N|SHARE"),
    "count": typer.Option("-n", "--count", min=1),
    "seed": typer.Option("--seed", min=0),
    "budget": typer.Option("--budget", metavar="30m|$2|200 runs"),
}


def with_options(
    options: type[Any],
    **replaced: Any,  # noqa: ANN401 -- typer returns Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns a decorator that gives a command one parameter for each field of a class.

    The docstring of the class has the help of each field. `replaced` has options and arguments of
    typer that replace the default ones, by field name; None removes a field.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        _, *further = inspect.signature(verb).parameters.values()
        hints = get_type_hints(verb, include_extras=True)
        parameters = [
            *_parameters(options, replaced),
            *(parameter.replace(annotation=hints[parameter.name]) for parameter in further),
        ]

        @wraps(verb)
        def call(**values: Any) -> None:  # noqa: ANN401 -- the signature below has the types
            verb(_take_options(options, values), **values)

        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
        return call

    return decorate


def _parameters(options: type[Any], replaced: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """Yields a parameter for each field, and for each field of a nested class of options."""
    hints, helps = get_type_hints(options), docstring(options)[1]
    for field in fields(options):
        if is_dataclass(field.default):
            yield from _parameters(type(field.default), replaced)
        elif replaced.get(field.name, field) is not None:
            info = _declaration(field.name, helps, **replaced)
            kind = hints[field.name]
            if get_origin(kind) is Sequence:
                kind = list[Path] if field.name == "config" else list[str]
            # An absent option is None, so that only the class declares the default.
            default = None if field.default is True else field.default or None
            annotation: Any = Annotated[str if info.parser else kind | None, info]
            yield inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )


def _declaration(name: str, helps: Mapping[str, str], **replaced: Any) -> Any:  # noqa: ANN401 -- typer returns Any
    plain = typer.Option(f"--{name.replace('_', '-')}")
    info = copy({**_DECLARATIONS, **replaced}.get(name, plain))
    info.help = info.help or helps[name]
    if name in _REPEATED:
        text, bracket, default = info.help.partition(" [default")
        info.help = f"{text} May be given several times.{bracket}{default}"
    return info


def _take_options(options: Any, values: dict[str, Any]) -> Any:  # noqa: ANN401 -- any class of options
    """Returns the options, and removes their values from a command's arguments."""
    arguments: dict[str, Any] = {}
    for field in fields(options):
        if is_dataclass(field.default):
            arguments[field.name] = _take_options(type(field.default), values)
        elif (value := values.pop(field.name, None)) is not None:
            arguments[field.name] = not value if field.default is True else value
    return options(**arguments)


_HELPS = docstring(JobOptions)[1]
ConfigFiles = Annotated[list[Path] | None, _declaration("config", _HELPS)]
Overrides = Annotated[list[str] | None, _declaration("overrides", _HELPS)]
Metrics = Annotated[list[str] | None, _declaration("metrics", _HELPS)]
Split = Annotated[str, _declaration("split", _HELPS)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def stdout() -> Console:
    """Returns the console for results."""
    from leporello.cli.display import SafeConsole

    return SafeConsole()


def stderr() -> Console:
    """Returns the console for messages that are not results."""
    from leporello.cli.display import SafeConsole

    return SafeConsole(stderr=True)


def print_plain(console: Console, text: str, style: str | None = None) -> None:
    """Prints a text without markup, which a terminal folds between words."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any, indent: int | None = 2) -> None:  # noqa: ANN401 -- any JSON
    """Prints a value as JSON, in which characters that control terminals are escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    typer.echo(_CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def size_text(size: int) -> str:
    """Returns a number of bytes in MB, or in KB below a tenth of a MB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} KB"  # noqa: PLR2004


def progress_bar(title: str, examples: int | None) -> ProgressDisplay | None:
    """Returns a progress bar; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        return None
    from leporello.cli.display import progress_display

    return progress_display(title, examples, stderr())


@contextmanager
def interruptible() -> Iterator[None]:
    """Ends the command if the user interrupts a block, whose work can be resumed."""
    try:
        yield
    except KeyboardInterrupt:
        stderr().print("interrupted; run the same command again to resume")
        raise typer.Exit(INTERRUPTED) from None
    except SystemExit as error:
        raise UserError(f"a task or metric tried to exit the process: {error}") from error


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Shows a text in the terminal while a block runs."""
    if not sys.stderr.isatty():
        yield
        return
    line = visible(f"{text} …")[: shutil.get_terminal_size().columns - 1]
    typer.echo(line, nl=False, err=True)
    try:
        yield
    finally:
        typer.echo("\r\x1b[2K", nl=False, err=True)


def program() -> list[str]:
    """Returns the shortest command that starts this program."""
    script = sys.argv[0]
    if not script.endswith(".py"):
        name = Path(script).name
        return [name if shutil.which(name) else script]
    python, this, here = shutil.which("python"), Path(sys.executable).absolute(), Path.cwd()
    # Links are not resolved: a link to another environment's interpreter is another python.
    is_same = python is not None and Path(python).absolute() == this
    path = this.relative_to(here) if this.is_relative_to(here) else this
    shortest = "python" if is_same else str(path)
    is_module = Path(script).name == "__main__.py"
    return [shortest, *(["-m", "leporello"] if is_module else [script])]
