"""What the verbs of the command line take and print in common."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leporello.core.errors import UserError
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
Pipelines = Annotated[
    list[str] | None,
    typer.Argument(
        help="Pipelines, points of a sweep, or '*' patterns. [default: the default one]"
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Option(
        "--task", help="A task; may be given several times. [default: the pipeline's own]"
    ),
]
ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option("--config", help="A file of your own, laid over the built-in one."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="retriever.k=5,10: change or sweep a parameter.", metavar="PATH=VALUE"
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="What reads: a path, a hub id, openai:MODEL, ollama:MODEL, http://HOST/v1, …",
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME|FILE.py:CLASS|YAML",
        help="Score with these, not with the task's own; may be given several times.",
    ),
]
SuiteName = Annotated[
    str,
    typer.Option(
        "--suite",
        metavar="NAME",
        help="A paper's table; PIPELINES are its rows, or run on its tasks.",
    ),
]
Split = Annotated[str, typer.Option("--split", help="Replaces the split of every task.")]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Where official data lie. [default: LEPORELLO_DATA, or ./data]",
        show_default=False,
        parser=to_path,
        metavar="PATH|URL",
        callback=_set_data_directory,
        is_eager=True,
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Go no further than as many examples.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="The run's directory. [default: runs/NAME]",
        show_default=False,
        parser=to_path,
        metavar="PATH|URL",
    ),
]
Executor = Annotated[
    Literal["local", "ray"] | None,
    typer.Option("--executor", help="Where to work; else as the pipeline's placement says."),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="auto|HOST:PORT",
        help="Of a Ray cluster; without, a Ray is started on this machine.",
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(
        "--workers",
        metavar="N|auto",
        help="Processes that work at shards, with a model each; 0 is this one.",
    ),
]
Selectors = Annotated[
    int | None,
    typer.Option(
        "--selectors",
        min=0,
        help="Processes a worker that divide and select ahead of its reader.",
    ),
]
WorkerGpus = Annotated[
    float | None,
    typer.Option(
        "--worker-gpus",
        metavar="X",
        help="GPUs of each worker, on Ray; below 1, several share one.",
    ),
]
Unsupervised = Annotated[
    bool,
    typer.Option(
        "--unsupervised",
        envvar="LEPORELLO_UNSUPERVISED",
        help="With --workers 0: others' classes work in this process too, as a debugger needs it.",
        show_envvar=False,
        callback=_leave_unsupervised,
    ),
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads of each worker.")]


NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither use nor fill the cache.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def out_option(help_: str, *, show_default: bool = False) -> Any:  # noqa: ANN401 -- as typer has it
    """Returns the option `--out` of a verb that writes to this machine's disk."""
    return typer.Option(
        "--out", help=help_, show_default=show_default, parser=on_disk, metavar="PATH"
    )


def with_model(overrides: list[str] | None, model: str) -> list[str]:
    """Returns the settings with what `--model` says among them."""
    return [*([f"model={json.dumps(model)}"] if model else []), *(overrides or ())]


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
