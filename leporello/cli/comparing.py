"""Verbs over finished runs: what they came to side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from leporello.cli.options import Tasks, print_json

__all__ = ["compare"]

Runs = Annotated[list[Path], typer.Argument(help="Directories of runs", show_default=False)]
Format = Literal["table", "markdown", "csv", "json", "latex"]


def compare(
    runs: Runs,
    *,
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline", help="What the others are tested against. [default: the first pipeline]"
        ),
    ] = "",
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
    from leporello import display_comparison
    from leporello.comparing import Draws, csv_of, latex, markdown, sheets
    from leporello.comparing import compare as compare_runs

    draws = Draws(samples, seed, by_document)
    found = compare_runs(runs, baseline=baseline, tasks=task or (), common=common, draws=draws)
    match form:
        case "table":
            display_comparison.comparison(Console(), sheets(found))
        case "json":
            print_json(asdict(found))
        case "csv":
            typer.echo(csv_of(found), nl=False)
        case "markdown":
            typer.echo(markdown(sheets(found)), nl=False)
        case "latex":
            typer.echo(latex(sheets(found)), nl=False)
