"""The verb that trains."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from leporello.cli.options import AsJson, ConfigFiles, Data, Limit, NoCache, Overrides, print_json

__all__ = ["train"]


def train(
    *,
    pipeline: Annotated[
        str, typer.Argument(help="A pipeline whose reader can learn. [default: the default one]")
    ] = "",
    task: Annotated[str, typer.Option("--task", help="What to learn from.")] = "",
    config: ConfigFiles = None,
    overrides: Overrides = None,
    split: Annotated[
        str, typer.Option("--split", help="Of the task. [default: train]", show_default=False)
    ] = "",
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    limit: Limit = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The model's directory. [default: models/NAME]", show_default=False
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Replace what an earlier training left.")
    ] = False,
    no_cache: NoCache = False,
    as_json: AsJson = False,
) -> None:
    """Trains a pipeline's reader on what the pipeline has it read; tells how to use it."""
    from leporello.training import train as train_reader

    with redirect_stdout(sys.stderr):  # what a plug-in prints is no result
        done = train_reader(
            pipeline,
            task,
            config=config or (),
            overrides=overrides or (),
            split=split,
            limit=limit,
            out=out,
            update=update,
            cached=not no_cache,
        )
    if as_json:
        print_json(asdict(done))
        return
    files = [part for file in (*(config or ()), done.config) for part in ("--config", str(file))]
    use = shlex.join(["run", done.pipeline, "--task", done.task, *files])
    told = f"learnt from {done.inputs:,} inputs of {done.examples:,} examples"
    skipped = f" ({done.skipped:,} skipped: no references, or failed)" if done.skipped else ""
    console = Console(markup=False, highlight=False, soft_wrap=True)
    console.print(f"{told}{skipped}; to use it:\n{use}")
