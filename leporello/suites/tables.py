"""Papers' tables with rows of runs, averaged only if complete."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from leporello.config import load_config
from leporello.config.suites import Suite, SuiteColumn, added_settings
from leporello.core.errors import UserError, did_you_mean
from leporello.core.yaml.tree import ConfigSource
from leporello.suites.cells import (
    Cell,
    PublishedPaper,
    PublishedTable,
    cells_of,
    published_of,
)
from leporello.suites.rows import AVERAGE, Entry, TableRow, name_of, notes_of

# Our rows are named after a row of the suite; a changed pipeline has a row with another name.
_Row: TypeAlias = tuple[str, str]
_OurEntries: TypeAlias = "Mapping[_Row, Mapping[str, Entry]]"


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """A table of a paper, with rows of runs."""

    suite: Suite
    name: str
    title: str  # title of the table in the paper
    paper: str  # authors, year and title of the paper
    source: str  # URL of the text with the published numbers
    columns: Mapping[str, tuple[str, ...]]  # labels of the numbers by column
    rows: tuple[TableRow, ...]  # Rows; ours follow the published row to which they belong
    has_scores: bool  # whether columns are scores of the suite's tasks, which rows of ours can have
    notes: tuple[str, ...]  # remarks below the table


def suite_tables(
    suite: Suite,
    runs: Sequence[Path] = (),
    table: str = "",
    files: Sequence[ConfigSource] = (),
) -> list[SuiteTable]:
    """Returns a paper's tables, with a row for each pipeline of runs, or of folders with runs.

    A table's name selects it; by default there are all tables, or with runs only those of the
    suite. `files` are the user's files with the pipelines of their rows. Raises UserError if two
    runs have the same cell.
    """
    published = published_of(suite)
    tables = {**published.tables}
    tables.setdefault(suite.table, _bare(suite))
    if table and table not in tables:
        raise UserError(f"{suite.name} has no table {table!r}{did_you_mean(table, tables)}")
    with_rows = [key for key, entry in tables.items() if entry.rows] or [*tables]
    names = [table] if table else [*{suite.table: 0, **suite.groups}] if runs else with_rows
    cells = cells_of(runs, suite)
    entries = _our_entries(suite, cells, files)
    filled = [_table(suite, published, name, tables[name], entries) for name in names]
    with_runs = [entry for entry in filled if any(row.ours for row in entry.rows)]
    if runs and not with_runs:
        raise UserError(f"these runs have no results for the columns of {names[0]!r}")
    return with_runs if runs else filled


def _bare(suite: Suite) -> PublishedTable:
    columns = {name: tuple(score for _, score in c.parts) for name, c in suite.columns.items()}
    if groups := suite.groups.get(suite.table):
        columns = dict.fromkeys(groups, ("mean",))
    return PublishedTable(suite.description or suite.name, columns, ())


def _our_entries(suite: Suite, cells: Sequence[Cell], files: Sequence[ConfigSource]) -> _OurEntries:
    """Returns entries of runs by row and column, with the suite's rows first."""
    by_key: dict[tuple[_Row, str, int], list[Cell]] = {}
    pipelines = {row: suite.pipelines(row) for row in suite.rows}
    configs = load_config(), load_config(files)
    for cell in cells:
        places = [
            (name, index)
            for name, column in suite.columns.items()
            for index, (task, _) in enumerate(column.parts)
            if added_settings(cell.job.task, task) is not None
        ]
        keys: list[tuple[_Row, str, int]] = [
            ((row, name_of(suite, row, cell, *configs)), *place)
            for place in places
            for row in suite.rows
            if pipelines[row].get(place[0]) == cell.job.pipeline
        ]
        for key in keys or [((cell.job.pipeline, cell.job.pipeline), *place) for place in places]:
            by_key.setdefault(key, []).append(cell)
    # An error, since a silent choice of the newest run could publish a wrong number (decision 45).
    if several := {c[0].name: [x.name for x in c] for c in by_key.values() if len(c) > 1}:
        listed = "\n".join("  " + "\n  ".join(names) for names in several.values())
        raise UserError(f"several runs have results for the same cell; give only one:\n{listed}")
    order = [*suite.rows]
    rows = dict.fromkeys(row for row, _, _ in by_key)
    entries: dict[_Row, dict[str, Entry]] = {}
    for row in sorted(rows, key=lambda r: order.index(r[0]) if r[0] in order else len(order)):
        for name, column in suite.columns.items():
            cells_of_row = [by_key.get((row, name, i), [None])[0] for i in range(len(column.parts))]
            if any(cells_of_row):
                entries.setdefault(row, {})[name] = _entry(column, cells_of_row)
    return entries


def _entry(column: SuiteColumn, cells: Sequence[Cell | None]) -> Entry:
    scores = [score for _, score in column.parts]
    numbers = [cell.scores.get(s) if cell else None for cell, s in zip(cells, scores, strict=True)]
    first = cells[0]
    present = [number for number in numbers if number is not None]
    # An unfinished run enters no average, as its first examples are not a sample.
    entering = first.scores.get(column.score) if first and not first.partial else None
    # By the split and size of the paper's test set: other cells are marked, and are averaged only
    # with cells marked in the same way (decision 45).
    complete = all(
        column.split in ("", cell.job.split) and not cell.partial for cell in cells if cell
    ) and (first is None or _is_whole(column, first))
    return Entry(tuple(numbers), entering, tuple(cells), bool(present) and complete)


def _is_whole(column: SuiteColumn, cell: Cell) -> bool:
    """Returns whether a cell has all examples of the published files."""
    if cell.unscored or column.examples is None:
        return not (cell.unscored or cell.limited)
    return cell.examples == column.examples


def _table(
    suite: Suite,
    published: PublishedPaper,
    name: str,
    table: PublishedTable,
    ours: _OurEntries,
) -> SuiteTable:
    columns = dict(table.columns)
    groups = suite.groups.get(name, {})
    # In another table, a column of the same name may have other labels.
    main_columns = published.tables.get(suite.table, table).columns
    common = [
        name
        for name in groups or suite.columns
        if name in columns and (name in groups or columns[name] == main_columns.get(name))
    ]
    simple = [name for name in common if {*groups.get(name, ())} <= suite.columns.keys()]
    rows = [*_rows(suite, table, common, groups, ours)]
    averaged_columns = {*suite.columns} & {*main_columns}
    averaged = AVERAGE in groups or (suite.average == "mean" and {*common} == averaged_columns)
    if averaged:
        columns.setdefault(AVERAGE, ("Avg",))
        rows = [_averaged(row, common) for row in rows]
    filled = [row for row in rows if row.ours]
    return SuiteTable(
        suite, name, table.title, published.paper, published.source, columns, tuple(rows),
        bool(common), tuple(notes_of(suite, filled, groups, simple, averaged=averaged)),
    )  # fmt: skip


def _rows(
    suite: Suite,
    table: PublishedTable,
    common: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    ours: _OurEntries,
) -> Iterator[TableRow]:
    """Yields published rows, each followed by our rows that belong to it."""
    included = {*common, *chain.from_iterable(groups.values())}
    pending = {}
    for key, row_entries in ours.items():
        parts = {column: entry for column, entry in row_entries.items() if column in included}
        entries = _grouped(parts, groups, table.columns) if groups else parts
        if parts:
            pending[key] = TableRow(key[1], ours=True, entries=entries, parts=parts)
    for row in table.rows:
        entries = {}
        for column, numbers in row.numbers.items():
            present = [number for number in numbers if number is not None]
            is_complete = column in common and len(present) == len(numbers)
            means = fmean(present) if is_complete and column in groups else None
            averages = is_complete and means is None
            entering = suite.columns[column].entering(present) if averages else means
            entries[column] = Entry(tuple(numbers), entering)
        run_by = tuple(key for key, our in suite.rows.items() if row.name in our.published)
        yield TableRow(row.name, ours=False, entries=entries, run_by=run_by)
        for key in [key for key in pending if key[0] in run_by]:
            yield pending.pop(key)
    yield from pending.values()


def _grouped(
    parts: Mapping[str, Entry],
    groups: Mapping[str, Sequence[str]],
    columns: Mapping[str, Sequence[str]],
) -> dict[str, Entry]:
    """Returns the means of groups whose columns are complete, one for each label of a group."""
    available = {**parts}
    for name, members in groups.items():
        if (mean := _mean(available, members)) is not None:
            entries = [available[member] for member in members]
            by_label = zip(*(entry.numbers for entry in entries), strict=True)
            several = len(columns.get(name, ())) > 1
            numbers = tuple(map(_complete_mean, by_label)) if several else (round(mean, 2),)
            cells = tuple(cell for entry in entries for cell in entry.cells)
            available[name] = Entry(numbers, mean, cells, all(entry.whole for entry in entries))
    return {name: available[name] for name in groups if name in available}


def _complete_mean(numbers: Sequence[float | None]) -> float | None:
    present = [number for number in numbers if number is not None]
    return round(fmean(present), 2) if len(present) == len(numbers) else None


def _mean(row: Mapping[str, Entry], columns: Sequence[str]) -> float | None:
    """Returns the mean of columns; None if one is missing or they have different bases."""
    entries = [row[column] for column in columns if column in row]
    values = [entry.entering for entry in entries if entry.entering is not None]
    # A mean over fewer columns, or over different examples, would claim more than it covers.
    if not columns or len(values) < len(columns) or len({entry.basis for entry in entries}) > 1:
        return None
    return fmean(values)


def _averaged(row: TableRow, columns: Sequence[str]) -> TableRow:
    """Returns a row with its mean; rows with an average, or without some column, stay as is."""
    mean = None if AVERAGE in (*row.entries, *columns) else _mean(row.entries, columns)
    if mean is None:
        return row
    is_complete = all(row.entries[column].whole for column in columns)
    average = Entry((round(mean, 2),), mean, whole=is_complete)
    return replace(row, entries={**row.entries, AVERAGE: average})
