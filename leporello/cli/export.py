"""Verbs that exchange files with other programs: `export`, `track`, `fetch` and `submit`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from leporello.cli.options import ConfigFiles, Data, RunAt, RunsAt, Split, out_option
from leporello.core.errors import counted


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
        Path | None, out_option("Write the files to this folder. [default: RUN/export]")
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
        Literal["mlflow", "wandb"], typer.Option("--to", help="Send the run to this tracker.")
    ],
    project: Annotated[
        str, typer.Option("--project", help="Use this project, or experiment of MLflow.")
    ] = "leporello",
) -> None:
    """Send the scores and files of a run to MLflow or Weights & Biases."""
    from leporello.analysis.export.trackers import track as track_run

    for name in track_run(run, to, project=project):
        typer.echo(name)


def fetch(
    tasks: Annotated[
        list[str], typer.Argument(help="Names of tasks, or patterns such as 'scrolls/*'.")
    ],
    *,
    config: ConfigFiles = None,
    split: Split = "",
    data: Data = None,
) -> None:
    """Download the official files of tasks from the Hugging Face Hub; skip existing files."""
    from leporello.config import load_config
    from leporello.tasks.official.download import fetch as fetch_files

    loaded = load_config(config or ())
    chosen = loaded.tasks_named(tasks)
    specs = [task.with_split(split) if split else task for task in chosen]
    for file in fetch_files({task.name: task.spec.build() for task in specs}, data):
        state = "downloaded" if file.downloaded else "already exists"
        typer.echo(f"{file.path}: {file.size:,} bytes, sha256 {file.sha256} ({state})")


def submit(
    runs: RunsAt,
    *,
    suite: Annotated[
        str,
        typer.Option(
            "--suite", "--benchmark", help="Submit to the leaderboard of this suite: scrolls, …"
        ),
    ],
    out: Annotated[
        Path, out_option("Write the CSV to this file, or into this folder.", show_default=True)
    ] = Path(),
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline",
            help="Submit the predictions of this pipeline or row, if the runs have several.",
        ),
    ] = "",
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
) -> None:
    """Write the CSV file that a leaderboard accepts, from runs on all tasks of the benchmark."""
    from leporello.analysis.export.submission import submit as submit_runs

    submission = submit_runs(runs, suite, out, pipeline=pipeline)
    for task, rows in submission.rows.items():
        failed = len(submission.failed.get(task, ()))
        failures = f", {failed:,} of them failed and are empty" if failed else ""
        typer.echo(f"{task}: {counted(rows, 'prediction')}{failures}")
    if splits := sorted({split for split in submission.splits.values() if split != "test"}):
        typer.echo(f"note: leaderboards take the split test; these are of {', '.join(splits)}")
    typer.echo(f"written to {submission.file}")
