"""Verbs over runs: what they came to side by side, all of it on a page, and how far one is."""

from __future__ import annotations

import time
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

import typer

from leporello.cli.options import (
    AsJson,
    ConfigFiles,
    Data,
    RunAt,
    RunsAt,
    out_option,
    print_json,
    run_at_argument,
    stdout,
)

Format = Literal["table", "markdown", "csv", "json", "latex"]
Baseline = Annotated[
    str,
    typer.Option(
        "--baseline", help="What the others are tested against. [default: the first pipeline]"
    ),
]

Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", help="Show only this task. May be given several times."),
]


def compare(
    runs: RunsAt,
    *,
    baseline: Baseline = "",
    task: Tasks = None,
    common: Annotated[
        bool, typer.Option("--common", help="Only the examples that all pipelines have finished.")
    ] = False,
    by_document: Annotated[
        bool,
        typer.Option("--by-document", help="Resample documents, with all their examples."),
    ] = False,
    samples: Annotated[int, typer.Option("--samples", min=100, help="Resamples.")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the resamples.")] = 0,
    form: Annotated[Format, typer.Option("--format", help="What to print.")] = "table",
) -> None:
    """Compares the pipelines of finished runs, with intervals and paired tests."""
    from leporello.analysis.comparison.comparison import compare as compare_runs
    from leporello.analysis.comparison.scores import Draws
    from leporello.analysis.comparison.tables import csv_of, tables_of
    from leporello.cli.display.tables import comparison
    from leporello.core.table import latex, markdown

    draws = Draws(samples, seed, by_document)
    compared = compare_runs(runs, baseline=baseline, tasks=task or (), common=common, draws=draws)
    match form:
        case "table":
            comparison(stdout(), tables_of(compared))
        case "json":
            print_json(asdict(compared))
        case "csv":
            typer.echo(csv_of(compared), nl=False)
        case "markdown":
            typer.echo(markdown(tables_of(compared)), nl=False)
        case "latex":
            typer.echo(latex(tables_of(compared)), nl=False)


def report(
    runs: RunsAt,
    *,
    out: Annotated[Path, out_option("The file.", show_default=True)] = Path("report.html"),
    inputs: Annotated[
        int,
        typer.Option("--inputs", min=0, help="Examples a task with the readers' exact inputs."),
    ] = 100,
    task: Tasks = None,
    baseline: Baseline = "",
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section",
            metavar="suites|lost|curves|training|FILE.py:CLASS|YAML",
            help="What to show between scores and examples; may be given several times.",
        ),
    ] = None,
    data: Data = None,  # noqa: ARG001 -- its callback has told the tasks
) -> None:
    """Writes one HTML file about finished runs: tables, plots, and every example to look at."""
    from leporello.report import report as write_report

    done = write_report(
        runs, out, inputs=inputs, tasks=task or (), baseline=baseline, sections=section or ()
    )
    for note in done.notes:
        typer.echo(f"note: {note}", err=True)
    size = done.bytes / 1e6
    typer.echo(f"{done.path}: {done.examples:,} examples, {size:.1f} MB")


def watch(
    run: RunAt,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Shows from another terminal how far a run is, until it ends."""
    from rich.live import Live

    from leporello.cli.display.plan import watched
    from leporello.runs.watch import Watch

    watched_run, console = Watch(run), stdout()
    if as_json:
        jobs = [{**asdict(job), "seconds_left": job.seconds_left} for job in watched_run.look()]
        print_json({"running": watched_run.running, "jobs": jobs})
        return
    if once or not console.is_terminal:
        console.print(watched(watched_run.look(), running=watched_run.running))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            running = watched_run.running  # asked first, so that the last look sees the end
            live.update(watched(watched_run.look(), running=running), refresh=True)
            if not running:
                return
            time.sleep(every)


def table(
    suite: Annotated[str, typer.Argument(help="A suite, as `list suites` shows them.")],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Runs whose pipelines are rows, or folders of runs; without, the paper's alone.",
            parser=run_at_argument,
            metavar="[RUN]...",
        ),
    ] = None,
    *,
    name: Annotated[
        str, typer.Option("--table", help="Which of its tables. [default: the one of its tasks]")
    ] = "",
    config: ConfigFiles = None,
    form: Annotated[
        Literal["terminal", "markdown", "latex", "csv", "html", "json"],
        typer.Option("--format", help="What to print."),
    ] = "terminal",
) -> None:
    """Prints a paper's tables: published numbers, and those of finished runs beside them."""
    from leporello.cli.display.tables import comparison
    from leporello.config.suites import suite_named
    from leporello.core.table import html, latex, markdown
    from leporello.suites import suite_tables
    from leporello.suites.layout import csv_of, records, text_tables

    made = suite_tables(suite_named(suite, config or ()), runs or (), name)
    texts = [*chain.from_iterable(map(text_tables, made))]
    match form:
        case "terminal":
            comparison(stdout(), texts, wide=True)
        case "markdown":
            typer.echo(markdown(texts), nl=False)
        case "latex":
            typer.echo(latex(texts), nl=False)
        case "html":
            typer.echo(html(texts))
        case "csv":
            typer.echo(csv_of(made), nl=False)
        case "json":
            print_json({"rows": records(made), "notes": [n for one in made for n in one.notes]})
