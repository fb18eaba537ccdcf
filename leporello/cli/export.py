"""Verbs that score predictions and export runs to other programs: `score`, `export`, `track`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from leporello.cli.options import (
    AsJson,
    ConfigFiles,
    Data,
    Metrics,
    RunAt,
    Split,
    out_option,
    print_json,
    stdout,
)
from leporello.storage import to_path


def export(
    run: RunAt,
    *,
    form: Annotated[
        Literal["parquet", "trec", "pan"],
        typer.Option(
            "--format",
            help="Write predictions and scores (parquet), hits and relevance judgements (trec), or"
            " solution-problem-N.json of a style change task (pan).",
        ),
    ],
    out: Annotated[
        Path | None,
        out_option("Write the files to this folder. [default: RUN/export]"),
    ] = None,
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
) -> None:
    """Write a run's predictions as Parquet or PAN's solutions, or its hits in TREC's formats."""
    from leporello.analysis.export.formats import write_pan, write_parquet, write_trec

    write = {"parquet": write_parquet, "trec": write_trec, "pan": write_pan}[form]
    for path in write(run, out or run / "export"):
        typer.echo(path)


def track(
    run: RunAt,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="mlflow|wandb|FILE.py:CLASS|YAML", help="Send the run to this tracker."
        ),
    ],
    project: Annotated[
        str,
        typer.Option(
            "--project", help="Use this project (wandb) or experiment (mlflow) of the tracker."
        ),
    ] = "leporello",
) -> None:
    """Send the scores and files of a run to MLflow, Weights & Biases or your own tracker."""
    from leporello.analysis.export.trackers import track as track_run

    for name in track_run(run, to, project=project):
        typer.echo(name)


def score(
    *,
    file: Annotated[
        Path,
        typer.Argument(
            help="Path or URL of a predictions.jsonl, or of a JSON object {id: prediction}.",
            parser=to_path,
            metavar="FILE",
        ),
    ],
    task: Annotated[
        str, typer.Option("--task", help="Score with the references and metrics of this task.")
    ],
    config: ConfigFiles = None,
    split: Split = "",
    metric: Metrics = None,
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Score any predictions file with a task's metrics."""
    from leporello.analysis.score import GOLD
    from leporello.analysis.score import score as score_file
    from leporello.cli.display import results

    result = score_file(file, task, config=config or (), split=split, metrics=metric or ())
    if as_json:
        print_json(result.row())
    else:
        results.scores(stdout(), [result])
    if result.faults:
        raise typer.Exit(2 if any(text.startswith(GOLD) for text in result.faults) else 1)
