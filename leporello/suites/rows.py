"""Rows of a paper's table, their names, and the notes below the table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from leporello.config import Config
from leporello.config.built_in import built_in_files
from leporello.config.suites import Suite, added_settings
from leporello.config.sweeps import label_of
from leporello.core.hashing import differing_fields
from leporello.jobs.manifest import readers_of
from leporello.suites.cells import Cell

AVERAGE = "average"  # column with averages, the paper's or computed
_CHANGES = 3  # changed parameters in a name


@dataclass(frozen=True, slots=True)
class Entry:
    """Numbers in one column of a row."""

    numbers: tuple[float | None, ...]  # numbers that are shown; None is a dash
    entering: float | None  # number that enters an average; None if missing
    cells: tuple[Cell | None, ...] = ()  # results behind our numbers; empty if published
    whole: bool = True  # whether the numbers are for the paper's complete test set

    @property
    def basis(self) -> tuple[str, bool]:
        """Split, and whether it is complete; all numbers of an average have the same."""
        cell = next(filter(None, self.cells), None)
        return (cell.job.split if cell else "", self.whole)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table."""

    name: str
    ours: bool  # whether the row is from runs
    entries: Mapping[str, Entry]
    # Our entries by the suite's columns, of which groups are the means.
    parts: Mapping[str, Entry] = field(default_factory=dict)
    run_by: tuple[str, ...] = ()  # names of the suite's rows that continue a published row


def name_of(suite: Suite, row: str, cell: Cell, built_in: Config, own: Config) -> str:
    """Returns `ROW`, `ROW [READER]` or `ROW [changed: PARAMETER=VALUE, …]`."""
    pipelines = suite.tree.items["rows"].items[row].items["pipelines"]
    config = built_in if pipelines.file in built_in_files() else own
    declared = [p.resolved() for p in config.select([cell.job.pipeline])]
    if cell.job.signature["pipeline"] in declared:
        return row
    fields = [*differing_fields(declared[0], cell.job.signature["pipeline"])]
    reader = cell.job.reader
    if reader != readers_of(declared[0]):
        fields = [change for change in fields if not change[0].startswith("reader")]
    else:
        reader = ""
    changes = [f"{path}={label_of(value):.40}" for path, _, value in fields]
    if len(changes) > _CHANGES:
        changes = [*changes[:_CHANGES], f"{len(changes) - _CHANGES} more"]
    changed = f"changed: {', '.join(changes)}" if changes else ""
    return f"{row} [{'; '.join(filter(None, (reader, changed)))}]"


def notes_of(
    suite: Suite,
    rows: Sequence[TableRow],
    groups: Mapping[str, Sequence[str]],
    columns: Sequence[str],
    *,
    averaged: bool,
) -> Iterator[str]:
    """Yields remarks on missing columns, unfinished runs and unofficial scores."""
    for row in rows:
        missing = [column for column in columns if column not in row.entries]
        for group in missing:
            lacking = [column for column in groups.get(group, ()) if column not in row.parts]
            if 0 < len(lacking) < len(groups.get(group, ())):
                yield f"{row.name}: no {group}: {', '.join(lacking)} missing"
        if averaged and AVERAGE not in row.entries:
            gaps = f"{', '.join(missing)} missing" if missing else "splits differ or are incomplete"
            yield f"{row.name}: no average: {gaps}"
        for column, entry in row.parts.items():
            declared = suite.columns[column]
            for (task, score), cell in zip(declared.parts, entry.cells, strict=True):
                if cell is None:
                    yield f"{row.name}: {task} missing for {column}"
                elif score and score not in cell.scores:
                    yield f"{cell.name} was not scored by {score}"
            partial = dict.fromkeys(cell.name for cell in entry.cells if cell and cell.partial)
            yield from (f"{cell} is not finished, and is not averaged" for cell in partial)
    if any(not entry.whole for row in rows for entry in row.parts.values()):
        yield "*: not the paper's complete test set; see splits and numbers of examples below"
    yield from dict.fromkeys(
        f"{cell.name}: {cell.unscored} of {cell.examples} examples have no usable reference, and"
        " are in no mean"
        for row in rows
        for cell in _cells(row)
        if cell.unscored
    )
    # Normalising changes the submitted answers, so all tables name it (decision 45).
    names = {cell.job.pipeline for row in rows for cell in _cells(row) if cell.job.normalised}
    yield from (f"{name}: scores are unofficial: answers were normalised" for name in sorted(names))
    yield from sorted(_settings(suite, rows))
    golden = {cell.job.pipeline for row in rows for cell in _cells(row) if cell.job.sees_gold}
    yield from (f"{name}: uses references or evidence" for name in sorted(golden))


def _settings(suite: Suite, rows: Sequence[TableRow]) -> Iterator[str]:
    """Yields the parameters of tasks in which runs differ from the suite's row."""
    # RULER leaves background and tokenizer to its users. Such a run has the same cell, and the
    # table names its settings (decision 45).
    of_rows = {
        p: row.settings for key, row in suite.rows.items() for p in suite.pipelines(key).values()
    }
    notes = set()
    for row in rows:
        for column, entry in row.parts.items():
            for (task, _), cell in zip(suite.columns[column].parts, entry.cells, strict=True):
                added = added_settings(cell.job.task, task) if cell else ""
                if cell and added != (declared := of_rows.get(cell.job.pipeline, "")):
                    settings = f" {added}" if added else f"out {declared}"
                    notes.add(f"{cell.job.pipeline}: run with{settings}")
    yield from notes


def _cells(row: TableRow) -> list[Cell]:
    return [cell for entry in row.parts.values() for cell in entry.cells if cell]
