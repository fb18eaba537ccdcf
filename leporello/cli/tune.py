"""The verb that chooses parameters."""

from __future__ import annotations

import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from leporello.cli.options import (
    AsJson,
    Data,
    out_option,
    print_json,
    stderr,
    stdout,
    with_options,
)
from leporello.jobs.options import TuneOptions

if TYPE_CHECKING:
    from leporello.tuning import Tuned

_INTERRUPTED = 130


@with_options(TuneOptions, pipeline=typer.Argument(), out=out_option())
def tune(
    options: TuneOptions,
    *,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    as_json: AsJson = False,
) -> None:
    """Chooses a pipeline's parameters, and says what they are worth on documents kept apart.

    What may be chosen are sweeps and ranges: in the YAML, by --set retriever.k=2,4,8 or
    --set 'retriever.k={range: [1, 64], log: true}', or in a file. The same command goes on.
    """
    from leporello.tuning import tune as search

    try:
        with redirect_stdout(sys.stderr):  # what a plug-in prints is no result
            found = search(**vars(options))
    except KeyboardInterrupt:
        stderr().print("interrupted; the same command goes on from here")
        raise typer.Exit(_INTERRUPTED) from None
    if as_json:
        print_json(asdict(found))
        return
    _show(found)
    files = [part for file in (*options.config, found.config) for part in ("--config", str(file))]
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
