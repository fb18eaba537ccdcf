"""Display as tables: names, classes, models, the cache, comparisons and `analyze`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, JustifyMethod, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from leporello.cli.options import print_plain
from leporello.core.errors import counted

if TYPE_CHECKING:
    from leporello.analysis.datasets import Distribution, FormatDiscrepancy, TaskAnalysis
    from leporello.cache.store import CacheEntry
    from leporello.config.reference.class_page import ClassPage
    from leporello.core.table import ResultTable
    from leporello.models.naming import KnownModel

_COLUMNS = ("", "count", "mean", "5 %", "median", "95 %", "largest")
_WIDEST = 10_000  # characters of a table without a terminal
_GAP = 2  # characters between columns


def show_table(
    console: Console,
    title: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    *,
    labels: int = 1,
) -> None:
    """Prints a table whose cells are never folded.

    If the columns are too wide for a terminal, several tables are printed below each other, with
    the same first `labels` columns, which name a row. Labels that leave too little room are
    replaced by numbers, and a legend explains these. The other columns are aligned to the right.
    """
    width = console.width
    room = width if console.is_terminal else _WIDEST  # programs and pagers take long lines
    cells = [[Text(c) if isinstance(c, str) else c for c in row] for row in rows]
    columns = [(header, [row[n] for row in cells]) for n, header in enumerate(headers)]
    names, values = columns[:labels], columns[labels:]
    legend: list[RenderableType] = []
    if values and _width(names) > room // 2:
        numbers = [Text(f"#{number}") for number in range(1, len(cells) + 1)]
        legend = [
            Text("  ").join([number, row[0], Text(_values(headers[1:labels], row[1:labels]))])
            for number, row in zip(numbers, cells, strict=True)
        ]
        names = [("", numbers)]
    blocks = [[*names]]
    for column in values:
        if len(blocks[-1]) > len(names) and _width([*blocks[-1], column]) > room:
            blocks.append([*names])
        blocks[-1].append(column)
    tables = (_table(block, len(names), room) for block in blocks)
    heading = [Text(title, style="italic")] if title else []
    console.width = room
    for part in [*heading, *tables, *legend, *[""] * bool(legend)]:
        console.print(part)
    console.width = width


def _values(headers: Sequence[str], cells: Sequence[Text]) -> str:
    pairs = zip(headers, cells, strict=True)
    return ", ".join(f"{header} {cell}".strip() for header, cell in pairs if cell)


_Column = tuple[str, Sequence[Text]]


def _width(columns: Sequence[_Column]) -> int:
    """Returns the smallest width of a table of these columns without folded words and cells."""
    return 1 + sum(_narrowest(column) + _GAP for column in columns)


def _narrowest(column: _Column) -> int:
    header, cells = column
    return max([0, *map(len, header.split()), *(cell.cell_len for cell in cells)])


def _table(columns: Sequence[_Column], labels: int, room: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    free = room - _width(columns)
    for number, column in enumerate(columns):
        width = _narrowest(column)
        more = max(0, len(column[0]) - width)
        if more <= free:
            width, free = width + more, free - more
        justify: JustifyMethod = "left" if number < labels else "right"
        table.add_column(escape(column[0]), justify=justify, width=width)
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*row)
    return table


def cache_contents(console: Console, root: Path, kinds: Mapping[str, Sequence[CacheEntry]]) -> None:
    """Prints the number and size of the cached entries of each kind."""
    rows = []
    for kind, entries in sorted(kinds.items()):
        last = datetime.fromtimestamp(max(entry.last_use for entry in entries)).astimezone()
        size = sum(entry.size for entry in entries) / 1e6
        rows.append((kind, f"{len(entries):,}", f"{size:,.1f}", f"{last:%Y-%m-%d %H:%M}"))
    show_table(console, f"Cached in {root}", ("kind", "entries", "MB", "last used"), rows)


def listing(console: Console, lists: Mapping[str, Mapping[str, str]]) -> None:
    """Prints the names of pipelines, tasks and classes by kind, each with its description."""
    for kind, entries in lists.items():
        console.print(f"[bold]{kind}[/bold]")
        table = Table.grid(padding=(0, 2), pad_edge=False)
        table.add_column(overflow="fold", max_width=console.width // 2)
        table.add_column(style="dim")
        for name, text in entries.items():
            table.add_row(f"  {escape(name)}", escape(text))
        console.print(table, highlight=False)


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

    kind = f"  {page.kind}" if page.kind != page.name else ""
    console.print(f"[bold]{escape(page.name)}[/bold]{kind}", highlight=False)
    console.print(f"[dim]{escape(page.source)}[/dim]\n", highlight=False, soft_wrap=True)
    console.print(Markdown(page.text))
    for parameter in page.parameters.values():
        console.print(f"\n  {escape(str(parameter))}", highlight=False)
        description = Padding(f"[dim]{escape(parameter.description)}[/dim]", (0, 0, 0, 6))
        console.print(description, highlight=False)
    if page.yaml:
        console.print(f"\n{escape(page.yaml)}", highlight=False, soft_wrap=True)


def models(console: Console, available: Sequence[KnownModel]) -> None:
    """Prints models, by their names for --model, and the servers that do not answer."""
    rows, absent = [], []
    for model in available:
        if model.name.endswith(":"):  # a server that does not answer
            absent.append(f"{model.name} {model.place}")
            continue
        window = f"{model.window:,}" if model.window else "–"
        weights = f"{model.bytes / 1e6:,.0f}" if model.bytes else "–"
        place = model.place.removeprefix("package ")
        rows.append((model.name, model.reader or "–", window, weights, place))
    show_table(console, "models", ("--model", "reader", "window", "MB", "where"), rows)
    if any(reader == "–" for _, reader, *_ in rows):
        text = "models without a reader are for stages: --set retriever.model=NAME"
        print_plain(console, text, "dim")
    for text in absent:
        print_plain(console, text, "dim")


def comparison(console: Console, tables: Iterable[ResultTable]) -> None:
    """Prints tables with their notes."""
    for result in tables:
        headers = [header.replace("_", " ") for header in result.headers]  # folded between words
        show_table(console, result.title, headers, result.rows, labels=result.labels)
        for note in result.notes:
            style = "yellow" if note.startswith("warning") else "dim"
            print_plain(console, note, style)
        if result.notes:
            console.print()


def show_task(console: Console, task: str, analysis: TaskAnalysis) -> None:
    """Prints the lengths and the spread of a task's examples."""
    spread = analysis.spread
    faulty = f", {analysis.faulty:,} of them faulty" if analysis.faulty else ""
    console.print(
        f"[bold]{escape(task)}[/bold]: {counted(analysis.examples, 'example')}{faulty}"
        f" on {counted(analysis.documents, 'document')}"
    )
    rows = {
        "words of inputs": analysis.inputs,
        "words of outputs": analysis.outputs,
        "spread, in words": spread.words,
        "spread, as a share": spread.shares,
    }
    _distributions(console, rows)
    console.print(
        f"spread: standard deviation of the positions where an output's bigrams first occur;"
        f" {spread.pairs - spread.unmeasured:,} of {counted(spread.pairs, 'output')}"
    )


def show_discrepancies(console: Console, jobs: Sequence[FormatDiscrepancy]) -> None:
    """Prints the differences in form between a run's answers and the references."""
    for job in jobs:
        console.print(f"[bold]{escape(job.pipeline)} on {escape(job.task)}[/bold]")
        rows = {"words of predictions": job.predictions, "words of references": job.references}
        _distributions(console, rows)
        if job.shorter is not None and job.longer is not None:
            console.print(
                f"{100 * job.shorter:.1f} % shorter and {100 * job.longer:.1f} % longer than"
                " 95 % of the references"
            )
        console.print(f"{job.empty:,} empty; {job.missing:,} failed")


def _distributions(console: Console, named: Mapping[str, Distribution | None]) -> None:
    rows = []
    for name, d in named.items():
        if d is not None:
            values = (d.mean, d.low, d.median, d.high, d.largest)
            numbers = (f"{n:,.3f}" if n < 1 else f"{n:,.1f}" for n in values)
            rows.append((name, f"{d.count:,}", *numbers))
    show_table(console, "", _COLUMNS, rows)
