"""The verb `score`: a predictions file, of a run or not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leporello.cli.options import AsJson, ConfigFiles, Data, Metrics, Split, print_json, stdout
from leporello.storage import to_path


def score(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            help="predictions.jsonl, or JSON {id: prediction}; or a URL",
            parser=to_path,
            metavar="FILE",
        ),
    ],
    task: Annotated[
        str, typer.Option("--task", help="The task whose metrics and references count.")
    ],
    config: ConfigFiles = None,
    split: Split = "",
    metric: Metrics = None,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    as_json: AsJson = False,
) -> None:
    """Scores any predictions file with a task's metrics."""
    from leporello.analysis.score import GOLD
    from leporello.analysis.score import score as score_file
    from leporello.cli.display import tables

    result = score_file(file, task, config=config or (), split=split, metrics=metric or ())
    if as_json:
        print_json(result.row())
    else:
        tables.scores(stdout(), [result])
    if result.faults:
        raise typer.Exit(2 if any(text.startswith(GOLD) for text in result.faults) else 1)
