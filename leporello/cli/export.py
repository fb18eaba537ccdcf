"""Verbs that score predictions and hand a run to other programs: `score`, `export`, `track`."""

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
        Literal["parquet", "trec"],
        typer.Option("--format", help="Predictions with scores, or hits and judgements."),
    ],
    out: Annotated[
        Path | None,
        out_option("A folder. [default: RUN/export]"),
    ] = None,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
) -> None:
    """Writes a run's predictions and scores as Parquet, or its retrieval in TREC's formats."""
    from leporello.analysis.export.formats import write_parquet, write_trec

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
    from leporello.cli.display import results

    result = score_file(file, task, config=config or (), split=split, metrics=metric or ())
    if as_json:
        print_json(result.row())
    else:
        results.scores(stdout(), [result])
    if result.faults:
        raise typer.Exit(2 if any(text.startswith(GOLD) for text in result.faults) else 1)
