"""Suites' tables as text, CSV and rows of values."""

from collections.abc import Iterator, Sequence
from typing import Any

from leporello.core.table import ResultTable
from leporello.suites.rows import AVERAGE, Entry, TableRow
from leporello.suites.tables import SuiteTable

_NO = "–"
_OURS, _PAPER, _PUBLISHED_ONLY = "ours", "paper", "published only"
_FACTS = (  # of our numbers
    "low", "high", "examples", "examples_of_paper", "split", "whole_test_set", "normalised",
    "pipeline", "reader", "run",
)  # fmt: skip
_CELLS = ("row", "reader", "column", "n", "of", "split", "score [95%]", "run")


def text_tables(table: SuiteTable) -> list[ResultTable]:
    """Returns the table in the paper's layout, and a table of the runs behind our rows."""
    our_rows = [row for row in table.rows if row.ours]
    headers = [
        name if labels == (name,) or name == AVERAGE else f"{name} {'/'.join(labels)}"
        for name, labels in table.columns.items()
    ]
    notes = list(table.notes)
    if table.source:
        notes.append(f"published: {table.paper}; {table.source}")
    origin = ("from" if our_rows else "our row",) if table.has_scores else ()
    main = ResultTable(
        f"{table.suite.name}, {table.title}",
        ("row", *origin, *headers),
        tuple(_row(row, table, has_ours=bool(our_rows)) for row in table.rows),
        tuple(notes),
    )
    if not our_rows or table.name != table.suite.table:  # only the main table lists the runs
        return [main]
    cells = tuple(
        _cell(row, name, entry, table) for row in our_rows for name, entry in row.parts.items()
    )
    return [main, ResultTable("Our rows", _CELLS, cells)]


def _row(row: TableRow, table: SuiteTable, *, has_ours: bool) -> tuple[str, ...]:
    texts = [
        _text(row.entries.get(name), ours=row.ours and name != AVERAGE) for name in table.columns
    ]
    origin = [_origin(row, has_ours=has_ours)] if table.has_scores else []
    return (row.name, *origin, *texts)


def _origin(row: TableRow, *, has_ours: bool) -> str:
    """Returns who has the numbers, or without rows of ours the rows that `run --suite` takes."""
    if row.ours:
        return _OURS
    names = _PAPER if has_ours else ", ".join(row.run_by)
    return names if row.run_by else _PUBLISHED_ONLY


def _text(entry: Entry | None, *, ours: bool) -> str:
    if entry is None:
        return _NO
    shown = [_NO if n is None else f"{n:.1f}" if ours else f"{n:,}" for n in entry.numbers]
    return "/".join(shown) + "*" * (not entry.whole)


def _cell(row: TableRow, name: str, entry: Entry, table: SuiteTable) -> tuple[str, ...]:
    column = table.suite.columns[name]
    first = next(cell for cell in entry.cells if cell)
    score = "" if entry.entering is None else f"{column.score} {entry.entering:.2f}"
    if score and (ends := first.intervals.get(column.score)):
        score += f" [{ends[0]:.1f}, {ends[1]:.1f}]"
    count = f"{first.examples:,}" + "*" * (not entry.whole)
    of = "?" if column.examples is None else f"{column.examples:,}"
    paths = (cell.job.run.directory.path for cell in entry.cells if cell)
    runs = ", ".join(dict.fromkeys(path.name for path in paths))
    return (row.name, first.job.reader, name, count, of, first.job.split, score, runs)


def records(tables: Sequence[SuiteTable]) -> list[dict[str, Any]]:
    """Returns a row for each number of the tables, published or ours."""
    return [record for table in tables for row in table.rows for record in _records(row, table)]


def _records(row: TableRow, table: SuiteTable) -> Iterator[dict[str, Any]]:
    source = {
        "suite": table.suite.name,
        "table": table.name,
        "row": row.name,
        "from": _OURS if row.ours else _PAPER,
        "paper": table.paper,
        "title": table.title,
    }
    labels_of = {name: tuple(s for _, s in table.suite.columns[name].parts) for name in row.parts}
    entries = {**row.parts, **row.entries}
    for name, labels in {**labels_of, **table.columns}.items():
        for index, label in enumerate(labels if name in entries else ()):
            number, facts = entries[name].numbers[index], _facts(entries[name], name, index, table)
            yield {**source, "column": name, "label": label, "value": number, **facts}


def _facts(entry: Entry, name: str, index: int, table: SuiteTable) -> dict[str, Any]:
    facts: dict[str, Any] = dict.fromkeys(_FACTS)
    if entry.cells:
        facts["whole_test_set"] = entry.whole
    column = table.suite.columns.get(name)
    cell = entry.cells[index] if entry.cells and column else None
    if column and cell:
        low, high = cell.intervals.get(column.parts[index][1]) or (None, None)
        facts |= {
            "low": low,
            "high": high,
            "examples": cell.examples,
            "examples_of_paper": column.examples,
            "split": cell.job.split,
            "normalised": cell.job.normalised,
            "pipeline": cell.job.pipeline,
            "reader": cell.job.reader,
            "run": str(cell.job.run.directory.path),
        }
    return facts
