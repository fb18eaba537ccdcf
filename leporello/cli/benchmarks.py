"""Verbs for benchmarks: `fetch`, `submit` and `analyze`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from leporello.cli.options import (
    AsJson,
    ConfigFiles,
    Data,
    RunsAt,
    Split,
    out_option,
    print_json,
    stdout,
)


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
        Path,
        out_option("Write the CSV to this file, or into this folder.", show_default=True),
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
        typer.echo(f"{task}: {rows:,} predictions{failures}")
    if splits := sorted({split for split in submission.splits.values() if split != "test"}):
        typer.echo(f"note: leaderboards take the split test; these are of {', '.join(splits)}")
    typer.echo(f"written to {submission.file}")


def analyze(
    what: Annotated[
        str, typer.Argument(help="Name of a task, or directory of a run.", metavar="TASK|RUN")
    ],
    *,
    config: ConfigFiles = None,
    split: Split = "",
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
    as_json: AsJson = False,
) -> None:
    """Print the lengths and the spread of references of a task, or the form of a run's answers."""
    from leporello.analysis.datasets import analyze_run, analyze_task
    from leporello.cli.display.tables import show_discrepancies, show_task
    from leporello.storage.runs import run_at

    run = run_at(what)
    if (run / "manifest.json").exists():
        discrepancies = analyze_run(run)
        if as_json:
            print_json([asdict(job) for job in discrepancies])
        else:
            show_discrepancies(stdout(), discrepancies)
        return
    analysis = analyze_task(what, config or (), split)
    if as_json:
        print_json(asdict(analysis))
    else:
        show_task(stdout(), what, analysis)
