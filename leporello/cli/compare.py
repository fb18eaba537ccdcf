"""Verbs that compare, report and watch runs: `compare`, `report`, `watch` and `table`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    size_text,
    stdout,
    waiting,
)
from leporello.core.errors import counted

if TYPE_CHECKING:
    from leporello.core.table import ResultTable

Format = Annotated[
    Literal["table", "markdown", "csv", "json", "latex", "html"],
    typer.Option("--format", help="Print this format."),
]
Baseline = Annotated[
    str,
    typer.Option(
        "--baseline",
        help="Test the other pipelines against this one. [default: the first pipeline]",
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
        bool, typer.Option("--common", help="Use only examples that all pipelines have finished.")
    ] = False,
    by_document: Annotated[
        bool, typer.Option("--by-document", help="Resample documents, each with all its examples.")
    ] = False,
    samples: Annotated[
        int, typer.Option("--samples", min=100, help="Resample this many times.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Resample with this random seed.")] = 0,
    form: Format = "table",
    everything: Annotated[
        bool,
        typer.Option("--all", help="Print tables of all differences, confidence, coverage, cost."),
    ] = False,
) -> None:
    """Compare the pipelines of finished runs, with intervals and paired tests."""
    from leporello.analysis.comparison.comparison import compare as compare_runs
    from leporello.analysis.comparison.scores import Draws
    from leporello.analysis.comparison.summary import summary_of
    from leporello.analysis.comparison.tables import rows_of, tables_of

    draws = Draws(samples, seed, by_document)
    with waiting("comparing"):
        result = compare_runs(runs, baseline=baseline, tasks=task or (), common=common, draws=draws)
    short = form == "table" and not everything
    texts = summary_of(result) if short else tables_of(result)
    _print_tables(form, texts, rows_of(result), asdict(result))


def _print_tables(
    form: str,
    texts: Iterable[ResultTable],
    rows: Sequence[Mapping[str, Any]],
    value: Any,  # noqa: ANN401 -- any JSON
) -> None:
    """Prints tables in a format: as texts, their `rows` as CSV, or a `value` as JSON."""
    from leporello.cli.display.tables import comparison
    from leporello.core.table import csv_of, html, latex, markdown

    if form == "json":
        print_json(value)
    elif form == "csv":
        typer.echo(csv_of(rows), nl=False)
    elif form == "table":
        comparison(stdout(), texts)
    else:
        write = {"markdown": markdown, "latex": latex, "html": html}[form]
        typer.echo("\n".join(map(write, texts)), nl=form == "html")


def report(
    runs: RunsAt,
    *,
    out: Annotated[Path, out_option("Write this HTML file.", show_default=True)] = Path(
        "report.html"
    ),
    inputs: Annotated[
        int,
        typer.Option(
            "--inputs",
            min=0,
            help="Show the readers' exact inputs for this many examples per task.",
        ),
    ] = 100,
    task: Tasks = None,
    baseline: Baseline = "",
    data: Data = None,  # noqa: ARG001 -- its callback sets the tasks' data directory
) -> None:
    """Write one HTML file about finished runs: who wins, lost answers and every example."""
    from leporello.report import report as write_report

    with waiting("writing the report"):
        page = write_report(runs, out, inputs=inputs, tasks=task or (), baseline=baseline)
    for note in page.notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"{page.path}: {counted(page.examples, 'example')}, {size_text(page.bytes)}")


def watch(run: RunAt, as_json: AsJson = False) -> None:
    """Show the progress of a run in another terminal until it is complete."""
    from leporello.cli.display.plan import show_progress
    from leporello.runs.watch import Watch

    watched, console = Watch(run), stdout()
    jobs = watched.look()
    if as_json:
        print_json([asdict(job) for job in jobs])
        return
    while console.is_terminal and not all(job.is_complete for job in jobs):
        console.clear()
        show_progress(console, jobs)
        console.print("Ctrl-C ends this display, not the run", style="dim")
        time.sleep(2)
        jobs = watched.look()
    show_progress(console, jobs)


def table(
    suite: Annotated[str, typer.Argument(help="Name of a suite; `list suites` prints them.")],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Directories of runs, or folders of runs, whose pipelines become rows. [default:"
            " only the published rows]",
            parser=run_at_argument,
            metavar="RUN",
        ),
    ] = None,
    *,
    name: Annotated[
        str,
        typer.Option(
            "--table", help="Print this table of the suite. [default: the table of its tasks]"
        ),
    ] = "",
    config: ConfigFiles = None,
    form: Format = "table",
) -> None:
    """Print the table of a paper: published scores, and the scores of finished runs beside them."""
    from leporello.config.suite_files import suite_named
    from leporello.suites import suite_tables
    from leporello.suites.layout import records, text_tables

    tables = suite_tables(suite_named(suite, config or ()), runs or (), name, config or ())
    texts = [*chain.from_iterable(map(text_tables, tables))]
    rows, notes = records(tables), [note for entry in tables for note in entry.notes]
    _print_tables(form, texts, rows, {"rows": rows, "notes": notes})
