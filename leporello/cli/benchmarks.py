"""Verbs on the benchmarks: their files, their leaderboards, their papers' analyses."""

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
    tasks: Annotated[list[str], typer.Argument(help="Tasks, or patterns such as 'scrolls/*'.")],
    *,
    config: ConfigFiles = None,
    split: Split = "",
    data: Data = None,
) -> None:
    """Downloads the official files of tasks from the hub; what is there is left alone."""
    from leporello.config import load_config
    from leporello.tasks.official.download import fetch as fetch_files

    loaded = load_config(config or ())
    chosen = loaded.tasks_named(tasks)
    specs = [task.with_split(split) if split else task for task in chosen]
    for file in fetch_files({task.name: task.spec.build() for task in specs}, data):
        state = "fetched" if file.downloaded else "there already"
        typer.echo(f"{file.path}: {file.size:,} bytes, sha256 {file.sha256} ({state})")


def submit(
    runs: RunsAt,
    *,
    suite: Annotated[
        str,
        typer.Option("--suite", "--benchmark", help="A suite with a leaderboard: scrolls, …"),
    ],
    out: Annotated[
        Path,
        out_option("The CSV, or a folder for it.", show_default=True),
    ] = Path(),
    pipeline: Annotated[
        str, typer.Option("--pipeline", help="The one that counts, or a row, if there are several.")
    ] = "",
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
) -> None:
    """Writes the CSV that a leaderboard takes, from runs on all tasks of the benchmark."""
    from leporello.analysis.export.submission import submit as submit_runs

    done = submit_runs(runs, suite, out, pipeline=pipeline)
    for task, rows in done.rows.items():
        failed = len(done.failed.get(task, ()))
        failures = f", {failed:,} of them failed and are empty" if failed else ""
        typer.echo(f"{task}: {rows:,} predictions{failures}")
    if other := sorted({split for split in done.splits.values() if split != "test"}):
        typer.echo(f"note: leaderboards take the split test; these are of {', '.join(other)}")
    typer.echo(f"written to {done.file}")


def analyze(
    what: Annotated[str, typer.Argument(help="A task, or a run's directory", metavar="TASK|RUN")],
    *,
    config: ConfigFiles = None,
    split: Split = "",
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
    as_json: AsJson = False,
) -> None:
    """Measures as the papers do: a task's lengths and spread, the form of a run's answers."""
    from leporello.analysis.datasets.analyze import analyze_run, analyze_task
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
    measured = analyze_task(what, config or (), split)
    if as_json:
        print_json(asdict(measured))
    else:
        show_task(stdout(), what, measured)
