"""Options, consoles and the progress bar that the verbs of the command line share."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from leporello.core.annotations import docstring
from leporello.core.errors import UserError
from leporello.jobs.options import JobOptions
from leporello.storage import on_disk, to_path

if TYPE_CHECKING:
    from rich.console import Console


def _set_data_directory(data: Path | None) -> Path | None:
    """Tells the tasks, which look there; the place of the data is no part of a run's config."""
    if data is not None:
        try:
            os.environ["LEPORELLO_DATA"] = str(data.expanduser().absolute())
        except RuntimeError:
            raise UserError(f"--data {data}: there is no such user") from None
    return data


def _leave_unsupervised(wanted: bool) -> None:
    """Tells whoever starts processes, for whom it is no part of a run's config."""
    if wanted:
        os.environ["LEPORELLO_UNSUPERVISED"] = "1"


def run_at_argument(text: str) -> Path:
    """Returns a run's directory, fetched if it is at a URL."""
    from leporello.storage.runs import run_at

    return run_at(text)


RunAt = Annotated[
    Path,
    typer.Argument(help="The run's directory, or its URL", parser=run_at_argument, metavar="RUN"),
]
RunsAt = Annotated[
    list[Path],
    typer.Argument(
        help="The runs' directories, or their URLs", parser=run_at_argument, metavar="RUN..."
    ),
]
Files = Annotated[
    list[str], typer.Argument(help="Files, folders, patterns, URLs.", metavar="FILE...")
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
        help="With --workers 0: run plug-in classes in this process too, for a debugger.",
        show_envvar=False,
        callback=_leave_unsupervised,
    ),
]


def out_option(help_: str = "", *, show_default: bool = False) -> Any:  # noqa: ANN401 -- as typer has it
    """Returns the option `--out` of a verb that writes to this machine's disk."""
    return typer.Option(
        "--out", help=help_, show_default=show_default, parser=on_disk, metavar="PATH"
    )


def _workers(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isdecimal():
        raise UserError(f"--workers takes a number or 'auto', got {text!r}")
    return int(text)


def _share(text: str) -> float | None:
    """Returns a number of examples, or a share of them below 1; None if the text is empty."""
    if not text:
        return None
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not share >= 0 or (share >= 1 and (text.endswith("%") or share % 1)):
        raise UserError(
            f"--max-failures {text}: must be a number of examples, as 10, or a share, as 0.05 or 5%"
        )
    return share


_TYPES: Mapping[str, Any] = {  # of options that typer takes as lists
    "pipelines": list[str],
    "tasks": list[str],
    "config": list[Path],
    "overrides": list[str],
    "metrics": list[str],
}
# How the command line spells an option, where its name, type and default do not determine it.
_SPELLINGS: Mapping[str, Any] = {
    "pipelines": typer.Argument(),
    "tasks": typer.Option("--task"),
    "overrides": typer.Option("--set", metavar="PATH=VALUE"),
    "cached": typer.Option("--no-cache", help="Neither use nor fill the cache."),
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
    "example_timeout": typer.Option("--example-timeout", min=0.001, metavar="SECONDS"),
    "max_failures": typer.Option("--max-failures", parser=_share, metavar="N|SHARE"),
    "count": typer.Option("-n", "--count", min=1),
    "seed": typer.Option("--seed", min=0),
    "budget": typer.Option("--budget", metavar="30m|$2|200 runs"),
}


def with_options(
    options: type[Any],
    **spelled: Any,  # noqa: ANN401 -- as typer has it
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Returns a decorator: a command takes the fields of a class of options as its parameters.

    Args:
        options: The class. Its docstring has the help of each field.
        spelled: Options and arguments of typer by the names of fields that the command spells in
            its own way; None leaves a field out.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        _, *others = inspect.signature(verb).parameters.values()
        hints = get_type_hints(verb, include_extras=True)
        parameters = [
            *_parameters(options, spelled),
            *(parameter.replace(annotation=hints[parameter.name]) for parameter in others),
        ]

        @wraps(verb)
        def call(**values: Any) -> None:  # noqa: ANN401 -- as its signature says
            verb(_filled(options, values), **values)

        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # as typer reads it
        return call

    return decorate


def option(options: type[Any], name: str) -> Any:  # noqa: ANN401 -- as typer has it
    """Returns the option for one field of a class of options."""
    return _spelled(name, docstring(options)[1], {})


def _parameters(options: type[Any], spelled: Mapping[str, Any]) -> Iterator[inspect.Parameter]:
    """Yields a parameter per field, and per field of a field that is a class of options too."""
    hints, helps = get_type_hints(options), docstring(options)[1]
    for field in fields(options):
        if is_dataclass(field.default):
            yield from _parameters(type(field.default), spelled)
        elif spelled.get(field.name, field) is not None:
            info = _spelled(field.name, helps, spelled)
            kind = _TYPES.get(field.name, hints[field.name])
            # An option that is not given is None, so that only the class has its default.
            default = None if field.default is True else field.default or None
            annotation: Any = Annotated[str if info.parser else kind | None, info]
            yield inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )


def _spelled(name: str, helps: Mapping[str, str], spelled: Mapping[str, Any]) -> Any:  # noqa: ANN401 -- as typer has it
    plain = typer.Option(f"--{name.replace('_', '-')}")
    info = copy({**_SPELLINGS, **spelled}.get(name, plain))
    info.help = info.help or helps[name]
    if name in _TYPES and name != "pipelines":
        text, default, rest = info.help.partition(" [default")
        info.help = f"{text} May be given several times.{default}{rest}"
    return info


def _filled(options: Any, values: dict[str, Any]) -> Any:  # noqa: ANN401 -- of any class of options
    """Returns the options; takes their values out of those of a command."""
    given: dict[str, Any] = {}
    for field in fields(options):
        if is_dataclass(field.default):
            given[field.name] = _filled(type(field.default), values)
        elif (value := values.pop(field.name, None)) is not None:
            given[field.name] = not value if field.default is True else value
    return options(**given)


ConfigFiles = Annotated[list[Path] | None, option(JobOptions, "config")]
Overrides = Annotated[list[str] | None, option(JobOptions, "overrides")]
Metrics = Annotated[list[str] | None, option(JobOptions, "metrics")]
Split = Annotated[str, option(JobOptions, "split")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def stdout() -> Console:
    """Returns the console for results."""
    from rich.console import Console

    return Console()


def stderr() -> Console:
    """Returns the console for what is no result."""
    from rich.console import Console

    return Console(stderr=True)


def print_json(value: Any) -> None:  # noqa: ANN401 -- any JSON
    """Prints a value as JSON; paths are texts."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


class RichProgress:
    """A bar in the terminal, as `leporello.engine.progress.ProgressDisplay` wants it."""

    def __init__(self, title: str, examples: int | None) -> None:
        """Draws nothing yet."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(title, total=examples, counts="")
        self.start, self.stop = self._bar.start, self._bar.stop

    def update(self, advance: int, counts: str) -> None:
        """See `ProgressDisplay`."""
        self._bar.update(self._task, advance=advance, counts=counts)


def progress_bar(title: str, examples: int | None) -> RichProgress | None:
    """Returns a bar; None where standard error is no terminal."""
    return RichProgress(title, examples) if sys.stderr.isatty() else None
