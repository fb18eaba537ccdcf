"""The verb that chooses parameters."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leporello.cli.options import (
    AsJson,
    ConfigFiles,
    Data,
    Limit,
    NoCache,
    Overrides,
    Split,
    Tasks,
    out_option,
    print_json,
    stderr,
    stdout,
)

if TYPE_CHECKING:
    from leporello.tuning import Tuned

_INTERRUPTED = 130


def tune(
    *,
    pipeline: Annotated[
        str, typer.Argument(help="A pipeline with choices. [default: the default one]")
    ] = "",
    task: Tasks = None,
    metric: Annotated[
        str, typer.Option("--metric", help="Choose by this, not by each task's first metric.")
    ] = "",
    budget: Annotated[
        str, typer.Option("--budget", metavar="30m|$2|200 runs", help="Time, dollars or points.")
    ] = "30m",
    space: Annotated[
        Path | None,
        typer.Option("--space", help="A YAML file of choices: `retriever.k: [2, 4, 8]`."),
    ] = None,
    cost: Annotated[
        Literal["characters", "tokens", "dollars"] | None,
        typer.Option("--cost", help="Look for cheap points too, and show the front."),
    ] = None,
    config: ConfigFiles = None,
    overrides: Overrides = None,
    split: Split = "",
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    limit: Limit = None,
    out: Annotated[
        Path | None,
        out_option("The config that is written. [default: tuned/PIPELINE.yaml]"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of documents and proposals.")] = 0,
    no_cache: NoCache = False,
    as_json: AsJson = False,
) -> None:
    """Chooses a pipeline's parameters, and says what they are worth on documents kept apart.

    What may be chosen are sweeps and ranges: in the YAML, by --set retriever.k=2,4,8 or
    --set 'retriever.k={range: [1, 64], log: true}', or in a file. The same command goes on.
    """
    from leporello.tuning import tune as search

    try:
        with redirect_stdout(sys.stderr):  # what a plug-in prints is no result
            found = search(
                pipeline,
                task or (),
                budget=budget,
                metric=metric,
                config=config or (),
                overrides=overrides or (),
                space=space,
                split=split,
                limit=limit,
                out=out,
                seed=seed,
                cost=cost or "",
                cached=not no_cache,
            )
    except KeyboardInterrupt:
        stderr().print("interrupted; the same command goes on from here")
        raise typer.Exit(_INTERRUPTED) from None
    if as_json:
        print_json(asdict(found))
        return
    _show(found)
    files = [part for file in (*(config or ()), found.config) for part in ("--config", str(file))]
    typer.echo(shlex.join(["run", found.pipeline, *files]))


def _show(found: Tuned) -> None:
    from leporello.cli.display import tables

    console = stdout()
    tables.tuned(console, found)
    for line in _lines(found):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _lines(found: Tuned) -> list[str]:
    chosen = ", ".join(f"{path}={value}" for path, value in found.chosen.items())
    how = (
        f"each document apart from one of {found.searches - 1} searches"
        if found.searches > 1
        else "which the search never looked at"
    )
    easier = "harder" if found.harder > 0 else "easier"
    return [
        f"{found.points} points, {found.stopped} of them stopped early"
        + (f"; {found.refused} refused by stages" if found.refused else ""),
        f"chosen: {chosen}" if chosen else "chosen: the pipeline as it is; nothing was better",
        f"kept apart: {found.apart} documents, {how}; expect {found.estimate.value:.2f},"
        f" not {found.estimate.value + found.optimism:.2f}: optimism {found.optimism:+.2f},"
        f" of which {found.harder:+.2f} since those documents are {easier} for it as it is, too",
    ]
