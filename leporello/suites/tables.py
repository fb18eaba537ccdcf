"""A paper's tables with rows of ours: averages only over what is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import fmean

from leporello.config.suites import Suite, SuiteColumn, further
from leporello.core.errors import UserError, did_you_mean
from leporello.suites.cells import Cell, PublishedPaper, PublishedTable, cells_of, published_of

AVERAGE = "average"  # column of a published table that holds the paper's own


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in one column of a row.

    Attributes:
        numbers: Numbers that are shown; None is a dash.
        entering: Number that enters an average; None if it is not there.
        cells: Runs that each of our numbers is from; none of the paper's.
        whole: Whether it is of the paper's whole test set.
    """

    numbers: tuple[float | None, ...]
    entering: float | None
    cells: tuple[Cell | None, ...] = ()
    whole: bool = True

    @property
    def basis(self) -> tuple[str, bool]:
        """What numbers of one average have in common: split, and whether all of it."""
        cell = next(filter(None, self.cells), None)
        return (cell.split if cell else "", self.whole)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table.

    Attributes:
        name: Name of the row in the paper, or of ours.
        ours: Whether it is of runs.
        entries: Entries by column.
        average: Average by the paper's rule, over all columns; None if one is missing.
        shared: Mean of the columns that all our rows have; None if there is none to take.
        parts: Entries of ours by the suite's columns; those are what groups are means of.
    """

    name: str
    ours: bool
    entries: Mapping[str, Entry]
    average: float | None = None
    shared: float | None = None
    parts: Mapping[str, Entry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """A table of a paper, with rows of runs.

    Attributes:
        suite: The suite.
        name: Name of the table.
        title: Title of it in the paper.
        paper: Authors, year and title of the paper.
        source: URL of the text that the published numbers stand in.
        columns: Labels of the numbers by column.
        rows: Rows, ours behind the published one that they continue.
        shared: Names of the columns of the mean shared; none if there is no such mean.
        notes: What a reader of the table should know.
    """

    suite: Suite
    name: str
    title: str
    paper: str
    source: str
    columns: Mapping[str, tuple[str, ...]]
    rows: tuple[TableRow, ...]
    shared: tuple[str, ...]
    notes: tuple[str, ...]


def suite_tables(suite: Suite, runs: Sequence[Path] = (), table: str = "") -> list[SuiteTable]:
    """Returns a paper's tables, with a row of ours for each pipeline of runs.

    Args:
        suite: The suite.
        runs: Directories of runs, or folders in which such lie.
        table: Name of the only table; if empty the suite's own, and all where no run is given.

    Raises:
        UserError: There is no such table or run, or two runs have one cell.
        ConfigError: What is wrong with the data file of the published numbers.
    """
    published = published_of(suite)
    tables = {**published.tables}
    tables.setdefault(suite.table, _bare(suite))
    if table and table not in tables:
        raise UserError(f"{suite.name} has no table {table!r}{did_you_mean(table, tables)}")
    told = [key for key, one in tables.items() if one.rows] or [*tables]
    names = [table] if table else [*{suite.table: 0, **suite.groups}] if runs else told
    cells = cells_of(runs, suite)
    ours = _ours(suite, cells)
    made = [_table(suite, published, name, tables[name], ours) for name in names]
    own = [one for one in made if any(row.ours for row in one.rows)]
    if runs and not own:
        raise UserError(f"no column of {names[0]!r} is of what these runs were made on")
    return own if runs else made


def _bare(suite: Suite) -> PublishedTable:
    """Returns the table of a suite without published numbers."""
    columns = {name: tuple(score for _, score in c.parts) for name, c in suite.columns.items()}
    if groups := suite.groups.get(suite.table):
        columns = dict.fromkeys(groups, ("mean",))
    return PublishedTable(suite.description or suite.name, columns, ())


def _ours(suite: Suite, cells: Sequence[Cell]) -> dict[str, dict[str, Entry]]:
    """Returns our rows by name, the suite's own first."""
    found: dict[tuple[str, str, int], list[Cell]] = {}
    pipelines = {row: suite.pipelines(row) for row in suite.rows}
    for cell in cells:
        places = [
            (name, index)
            for name, column in suite.columns.items()
            for index, (task, _) in enumerate(column.parts)
            if further(cell.task, task) is not None
        ]
        keys = [
            (row, *place)
            for place in places
            for row in suite.rows
            if pipelines[row].get(place[0]) == cell.pipeline
        ]
        for key in keys or [(cell.pipeline, *place) for place in places]:
            found.setdefault(key, []).append(cell)
    if several := {c[0].name: [x.name for x in c] for c in found.values() if len(c) > 1}:
        listed = "\n".join("  " + "\n  ".join(names) for names in several.values())
        raise UserError(f"several runs have one cell; give one of each:\n{listed}")
    order = dict.fromkeys([*suite.rows, *(row for row, _, _ in found)])
    return {
        row: {
            name: _entry(
                column,
                [next(iter(found.get((row, name, i), ())), None) for i in range(len(column.parts))],
            )
            for name, column in suite.columns.items()
            if any((row, name, i) in found for i in range(len(column.parts)))
        }
        for row in order
        if any(row == one for one, _, _ in found)
    }


def _entry(column: SuiteColumn, cells: Sequence[Cell | None]) -> Entry:
    scores = [score for _, score in column.parts]
    numbers = [cell.scores.get(s) if cell else None for cell, s in zip(cells, scores, strict=True)]
    first = cells[0]
    known = [number for number in numbers if number is not None]
    entering = (
        None
        if first is None or first.partial or column.score not in first.scores
        else first.scores[column.score]
    )
    whole = all(
        cell.split == (column.split or cell.split) and not cell.partial for cell in cells if cell
    ) and (first is None or column.examples in (None, first.examples))
    return Entry(tuple(numbers), entering, tuple(cells), bool(known) and whole)


def _table(
    suite: Suite,
    published: PublishedPaper,
    name: str,
    table: PublishedTable,
    ours: Mapping[str, Mapping[str, Entry]],
) -> SuiteTable:
    columns = dict(table.columns)
    groups = suite.groups.get(name, {})
    # A column of this name may be by another measure in another table.
    known = published.tables.get(suite.table, table).columns
    common = [
        one
        for one in groups or suite.columns
        if one in columns and (one in groups or columns[one] == known.get(one))
    ]
    simple = [one for one in common if {*groups.get(one, ())} <= suite.columns.keys()]
    rows = [*_rows(suite, table, common, groups, ours)]
    averaged = AVERAGE in groups or (suite.average == "mean" and {*common} == {*suite.columns})
    if averaged:
        columns.setdefault(AVERAGE, ("Avg",))
        rows = [_averaged(row, common) for row in rows]
    own = [row for row in rows if row.ours]
    shared = _shared(own, simple) if averaged and any(r.average is None for r in own) else ()
    rows = [replace(row, shared=_mean(row.entries, shared)) for row in rows]
    return SuiteTable(
        suite, name, table.title, published.paper, published.source, columns, tuple(rows), shared,
        tuple(_notes(suite, own, groups, simple, averaged=averaged)),
    )  # fmt: skip


def _rows(
    suite: Suite,
    table: PublishedTable,
    common: Sequence[str],
    groups: Mapping[str, Sequence[str]],
    ours: Mapping[str, Mapping[str, Entry]],
) -> Iterator[TableRow]:
    """Yields published rows, each with those of ours that continue it behind it."""
    wanted = {*common, *chain.from_iterable(groups.values())}
    left = {}
    for key, own in ours.items():
        parts = {column: entry for column, entry in own.items() if column in wanted}
        entries = _grouped(parts, groups) if groups else parts
        if parts:
            left[key] = TableRow(key, ours=True, entries=entries, parts=parts)
    for row in table.rows:
        entries = {}
        for column, numbers in row.numbers.items():
            known = [number for number in numbers if number is not None]
            whole = column in common and len(known) == len(numbers)
            means = known[0] if whole and column in groups else None
            entering = suite.columns[column].entering(known) if whole and means is None else means
            entries[column] = Entry(tuple(numbers), entering)
        yield TableRow(row.name, ours=False, entries=entries)
        for key in [k for k in left if k in suite.rows and suite.rows[k].published == row.name]:
            yield left.pop(key)
    yield from left.values()


def _grouped(parts: Mapping[str, Entry], groups: Mapping[str, Sequence[str]]) -> dict[str, Entry]:
    """Returns the means of columns that are all there, by group."""
    found = {**parts}
    for name, members in groups.items():
        if (mean := _mean(found, members)) is not None:
            cells = tuple(cell for member in members for cell in found[member].cells)
            whole = all(found[member].whole for member in members)
            found[name] = Entry((mean,), mean, cells, whole)
    return {name: found[name] for name in groups if name in found}


def _mean(row: Mapping[str, Entry], columns: Sequence[str]) -> float | None:
    """Returns the mean of columns that are all there, on one basis; else None."""
    entries = [row[column] for column in columns if column in row]
    values = [entry.entering for entry in entries if entry.entering is not None]
    if not columns or len(values) < len(columns) or len({entry.basis for entry in entries}) > 1:
        return None
    return fmean(values)


def _averaged(row: TableRow, columns: Sequence[str]) -> TableRow:
    stated = row.entries.get(AVERAGE)
    average = stated.numbers[0] if stated else None
    # Groups say themselves what their average is of.
    if stated is None and AVERAGE not in columns:
        average = _mean(row.entries, columns)
    return replace(row, average=average)


def _shared(own: Sequence[TableRow], columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the columns that all our rows have, if they are more than one and not all."""
    there = Counter(
        column for row in own for column, entry in row.entries.items() if entry.entering is not None
    )
    shared = tuple(column for column in columns if there[column] == len(own))
    return shared if len(shared) > 1 else ()


def _notes(
    suite: Suite,
    own: Sequence[TableRow],
    groups: Mapping[str, Sequence[str]],
    columns: Sequence[str],
    *,
    averaged: bool,
) -> Iterator[str]:
    """Yields what is said by name: what is not whole, missing, rewritten, or scored otherwise."""
    for row in own:
        missing = [column for column in columns if column not in row.entries]
        for group in missing:
            lacking = [one for one in groups.get(group, ()) if one not in row.parts]
            if 0 < len(lacking) < len(groups.get(group, ())):
                yield f"{row.name}: no {group}: {', '.join(lacking)} missing"
        if averaged and row.average is None:
            why = f"{', '.join(missing)} missing" if missing else "not all of one split, whole"
            yield f"{row.name}: no average: {why}"
        for column, entry in row.parts.items():
            wanted = suite.columns[column]
            for (task, score), cell in zip(wanted.parts, entry.cells, strict=True):
                if cell is None:
                    yield f"{row.name}: {task} missing, of {column}"
                elif score and score not in cell.scores:
                    yield f"{cell.name} was not scored by {score}"
            partial = dict.fromkeys(cell.name for cell in entry.cells if cell and cell.partial)
            yield from (f"{cell} is not finished, and enters no average" for cell in partial)
    if any(not entry.whole for row in own for entry in row.parts.values()):
        yield "*: not the paper's whole test set; splits and numbers of examples stand below"
    names = {cell.pipeline for row in own for cell in _cells(row) if cell.normalised}
    yield from (f"{name}: answers were normalised: no official score" for name in sorted(names))
    made = {
        f"{cell.pipeline}: made with {more}"
        for row in own
        for column, entry in row.parts.items()
        for (task, _), cell in zip(suite.columns[column].parts, entry.cells, strict=True)
        if cell and (more := further(cell.task, task))
    }
    yield from sorted(made)
    golden = {cell.pipeline for row in own for cell in _cells(row) if cell.sees_gold}
    yield from (f"{name}: sees the gold" for name in sorted(golden))


def _cells(row: TableRow) -> list[Cell]:
    return [cell for entry in row.parts.values() for cell in entry.cells if cell]
