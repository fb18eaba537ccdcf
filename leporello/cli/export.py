"""Verbs that hand a run to other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from leporello.cli.options import Data, RunAt
from leporello.storage import on_disk


def export(
    run: RunAt,
    *,
    form: Annotated[
        Literal["parquet", "trec"],
        typer.Option("--format", help="Predictions with scores, or hits and judgements."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="A folder. [default: RUN/export]",
            show_default=False,
            parser=on_disk,
            metavar="PATH",
        ),
    ] = None,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
) -> None:
    """Writes a run's predictions and scores as Parquet, or its retrieval in TREC's formats."""
    from leporello.analysis.export import write_parquet, write_trec

    write = write_parquet if form == "parquet" else write_trec
    for path in write(run, out or run / "export"):
        typer.echo(path)


def track(
    run: RunAt,
    *,
    to: Annotated[
        str, typer.Option("--to", metavar="mlflow|wandb|FILE.py:CLASS|YAML", help="Which tracker.")
    ],
    project: Annotated[
        str, typer.Option("--project", help="Where in it: a project, or an experiment.")
    ] = "leporello",
) -> None:
    """Puts a run's parameters, scores and files into MLflow, Weights & Biases, or one's own."""
    from leporello.analysis.export.trackers import track as track_run

    for name in track_run(run, to, project=project):
        typer.echo(name)
