"""Display as tables: names, classes, models, the cache, comparisons, `tune` and `analyze`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

if TYPE_CHECKING:
    from leporello.analysis.cache_misses import Reuse
    from leporello.analysis.datasets.analyze import JobDiscrepancy
    from leporello.analysis.datasets.distributions import Distribution, Histogram
    from leporello.analysis.datasets.statistics import TaskAnalysis
    from leporello.cache.store import CacheEntry
    from leporello.config.reference.class_page import ClassPage
    from leporello.core.table import ResultTable
    from leporello.models.inventory import KnownModel
    from leporello.tuning import Tuned

_BAR = 40  # characters of the longest bar
_COLUMNS = ("", "count", "mean", "5 %", "median", "95 %", "largest")
_TUNED = ("tuned", "as it is")  # keys of the scores
_WIDEST = 10_000  # characters


def new_table(title: str, *headers: str) -> Table:
    """Returns an empty table; columns after the first are aligned to the right."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, header in enumerate(headers):
        table.add_column(header, justify="right" if position else "left", overflow="fold")
    return table


def cache_contents(console: Console, root: Path, kinds: Mapping[str, Sequence[CacheEntry]]) -> None:
    """Prints the number and size of the cached entries of each kind."""
    table = new_table(f"Cached in {escape(str(root))}", "kind", "entries", "MB", "last used")
    for kind, entries in sorted(kinds.items()):
        last = datetime.fromtimestamp(max(entry.last_use for entry in entries)).astimezone()
        size = sum(entry.size for entry in entries) / 1e6
        table.add_row(kind, f"{len(entries):,}", f"{size:,.1f}", f"{last:%Y-%m-%d %H:%M}")
    console.print(table)


def reuses(console: Console, shown: Sequence[Reuse]) -> None:
    """Prints which results of an example are cached, and why others are not."""
    for job in dict.fromkeys((reuse.pipeline, reuse.task) for reuse in shown):
        console.print(f"[bold]{escape(' on '.join(job))}[/bold]", highlight=False)
        for r in (reuse for reuse in shown if (reuse.pipeline, reuse.task) == job):
            state = "cached" if r.kept else "not cached"
            words = "the most similar entry differs in " if " -> " in r.differs else ""
            reason = f"; {words}{r.differs}" if r.differs else ""
            text = f"  {r.kind} by {r.stage}: {state}{reason}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)


def listing(console: Console, lists: Mapping[str, Mapping[str, str]]) -> None:
    """Prints the names of pipelines, tasks and classes by kind."""
    for kind, entries in lists.items():
        lines = [f"[bold]{kind}[/bold]"]
        for name, text in entries.items():
            lines.append(f"  {escape(name)}")
            lines += [f"      [dim]{escape(text)}[/dim]"] * bool(text)
        console.print("\n".join(lines), highlight=False)  # in one call: each takes 0.2 ms


def overview(
    console: Console, starters: Mapping[str, tuple[str, str]], counts: Mapping[str, int]
) -> None:
    """Prints pipelines to begin with, and the number of entries of each kind."""
    table = Table.grid(padding=(0, 2))
    for name, (text, needs) in starters.items():
        table.add_row(f"[bold]{escape(name)}[/bold]", escape(text + f" ({needs})" * bool(needs)))
    console.print("Pipelines to begin with; models in brackets are downloaded:\n")
    console.print(table)
    console.print()
    numbers = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    console.print(f"All entries: {numbers}.", highlight=False)
    console.print(
        "More: list KIND, list NAME, list --offline, list --search WORD.", highlight=False
    )


def page(console: Console, page: ClassPage) -> None:
    """Prints the documentation of one class."""
    from rich.markdown import Markdown

    console.print(f"[bold]{escape(page.name)}[/bold]  {page.kind}", highlight=False)
    console.print(f"[dim]{escape(page.source)}[/dim]\n", highlight=False, soft_wrap=True)
    console.print(Markdown(page.text))
    for parameter in page.parameters.values():
        console.print(f"\n  {escape(str(parameter))}", highlight=False)
        description = Padding(f"[dim]{escape(parameter.description)}[/dim]", (0, 0, 0, 6))
        console.print(description, highlight=False)
    if page.yaml:
        console.print(f"\n{escape(page.yaml)}", highlight=False, soft_wrap=True)
    if page.pipelines:
        console.print(f"\n[dim]used by {', '.join(page.pipelines)}[/dim]", highlight=False)


def models(console: Console, available: Sequence[KnownModel]) -> None:
    """Prints models; the first column has their names for --model."""
    table = new_table("models", "--model", "reader", "window", "MB", "where")
    for model in available:
        window = f"{model.window:,}" if model.window else "–"
        weights = f"{model.bytes / 1e6:,.0f}" if model.bytes else "–"
        table.add_row(escape(model.name), model.reader or "–", window, weights, escape(model.place))
    console.print(table)


def tuned(console: Console, result: Tuned) -> None:
    """Prints scores on search and held-out documents, and the best score at each cost."""
    title = ", ".join(f"{metric} on {task}" for task, metric in result.metrics.items())
    table = new_table(title, "documents", "tuned", "original", "difference [95 %]")
    sides = (("chosen on", "searched", result.gain), ("apart", "held out", result.apart_gain))
    for side, label, gain in sides:
        means = [
            f"{fmean(scores[f'{side}, {n}'] for scores in result.by_task.values()):.2f}"
            for n in _TUNED
        ]
        if side == "apart" and (ends := result.estimate.interval):
            means[0] += f" [{ends[0]:.1f}, {ends[1]:.1f}]"
        ends = gain.interval
        spread = f" [{ends[0]:+.1f}, {ends[1]:+.1f}]" if ends else ""
        table.add_row(label, *means, f"{gain.value:+.2f}{spread}")
        for task, scores in result.by_task.items() if len(result.by_task) > 1 else ():
            cells = (f"{scores[f'{side}, {n}']:.2f}" for n in _TUNED)
            table.add_row(f"  {escape(task)}", *cells, "")
    console.print(table)
    if result.front:
        front = new_table(
            f"Best score at each cost ({result.cost} per question)", "choices", "score", "cost"
        )
        for row in result.front:
            chosen: Any = row["chosen"]
            text = ", ".join(f"{path}={value}" for path, value in chosen.items()) or "original"
            front.add_row(escape(text), f"{row['score']:.2f}", f"{row['cost']:,.6g}")
        console.print(front)


def comparison(console: Console, tables: Iterable[ResultTable], *, wide: bool = False) -> None:
    """Prints tables with their notes; `wide` tables are not folded if there is no terminal."""
    for result in tables:
        table = _result_table(result)
        options = console.options.update(max_width=_WIDEST)
        if wide and not console.is_terminal:
            console.width = max(console.width, table.__rich_measure__(console, options).maximum)
        console.print(table)
        for note in result.notes:
            style = "yellow" if note.startswith("warning") else "dim"
            console.print(note, style=style, markup=False, highlight=False, soft_wrap=True)
        if result.notes:
            console.print()


def _result_table(result: ResultTable) -> Table:
    table = new_table(escape(result.title), *map(escape, result.headers))
    for row in result.rows:
        table.add_row(*map(escape, row))
    return table


def show_task(console: Console, task: str, analysis: TaskAnalysis) -> None:
    """Prints the lengths and the spread of a task's examples."""
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
    console.print(_distributions(rows))
    console.print(
        f"spread: standard deviation of the positions where an output's bigrams first occur;"
        f" {spread.pairs - spread.unmeasured:,} of {spread.pairs:,} outputs"
    )
    if spread.shares:
        _histogram(console, spread.shares.histogram)


def show_discrepancies(console: Console, jobs: Sequence[JobDiscrepancy]) -> None:
    """Prints the differences in form between a run's answers and the references."""
    for job in jobs:
        d = job.discrepancy
        console.print(f"[bold]{escape(job.pipeline)} on {escape(job.task)}[/bold]")
        rows = {"words of predictions": d.predictions, "words of references": d.references}
        console.print(_distributions(rows))
        if d.shorter is not None and d.longer is not None:
            console.print(
                f"{100 * d.shorter:.1f} % shorter and {100 * d.longer:.1f} % longer than"
                " 95 % of the references"
            )
        unparsed = [f"{100 * share:.1f} % without an answer that {name} can parse"
                for name, share in d.unparsed.items()]  # fmt: skip
        console.print("; ".join([f"{d.empty:,} empty", f"{d.missing:,} failed", *unparsed]))


def _distributions(rows: dict[str, Distribution | None]) -> Table:
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
