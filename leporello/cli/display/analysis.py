"""What `analyze` shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leporello.analysis.datasets.analyze import JobDiscrepancy
from leporello.analysis.datasets.distributions import Distribution, Histogram
from leporello.analysis.datasets.statistics import TaskAnalysis
from leporello.cli.display.tables import new_table

_BAR = 40  # characters of the longest bar
_COLUMNS = ("", "count", "mean", "5 %", "median", "95 %", "largest")


def show_task(console: Console, task: str, analysis: TaskAnalysis) -> None:
    """Prints lengths and spread of a task's data."""
    spread = analysis.spread
    faulty = f", {analysis.faulty:,} of them faulty" if analysis.faulty else ""
    console.print(
        f"[bold]{escape(task)}[/bold]: {analysis.examples:,} examples{faulty}"
        f" on {analysis.documents:,} documents"
    )
    rows = {
        "words of inputs": analysis.inputs,
        "words of outputs": analysis.outputs,
        "spread, in words": spread.words,
        "spread, as a share": spread.shares,
    }
    console.print(_table(rows))
    console.print(
        f"spread: the standard deviation of where an output's bigrams first occur;"
        f" {spread.pairs - spread.unmeasured:,} of {spread.pairs:,} outputs"
    )
    if spread.shares:
        _histogram(console, spread.shares.histogram)


def show_discrepancies(console: Console, jobs: Sequence[JobDiscrepancy]) -> None:
    """Prints how the answers of a run differ in form from the references."""
    for job in jobs:
        d = job.discrepancy
        console.print(f"[bold]{escape(job.pipeline)} on {escape(job.task)}[/bold]")
        rows = {"words of predictions": d.predictions, "words of references": d.references}
        console.print(_table(rows))
        if d.shorter is not None and d.longer is not None:
            console.print(
                f"{100 * d.shorter:.1f} % shorter and {100 * d.longer:.1f} % longer than"
                " 95 % of the references"
            )
        unparsed = [f"{100 * share:.1f} % without an answer that {name} reads"
                for name, share in d.unparsed.items()]  # fmt: skip
        console.print("; ".join([f"{d.empty:,} empty", f"{d.missing:,} failed", *unparsed]))


def _table(rows: dict[str, Distribution | None]) -> Table:
    table = new_table("", *_COLUMNS)
    for name, d in rows.items():
        if d is not None:
            values = (d.mean, d.low, d.median, d.high, d.largest)
            table.add_row(name, f"{d.count:,}", *(_number(value) for value in values))
    return table


def _number(value: float) -> str:
    return f"{value:,.3f}" if value < 1 else f"{value:,.1f}"


def _histogram(console: Console, histogram: Histogram) -> None:
    most = max(histogram.counts)
    for edge, count in zip(histogram.edges, histogram.counts, strict=False):
        bar = "█" * round(_BAR * count / most)
        console.print(f"{edge:6.3f}  {bar} {count:,}", highlight=False)
