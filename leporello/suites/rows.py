"""Rows of a paper's table, and the names of our rows, which name what a run changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leporello.config import load_config
from leporello.config.built_in import is_built_in
from leporello.config.suites import Suite
from leporello.config.sweeps import label_of
from leporello.core.hashing import differing_fields
from leporello.core.yaml.tree import ConfigSource
from leporello.jobs.signature import readers_of
from leporello.suites.cells import Cell

_CHANGES = 3  # changed parameters in a name


@dataclass(frozen=True, slots=True)
class Entry:
    """Numbers in one column of a row.

    Attributes:
        numbers: Numbers that are shown; None is a dash.
        entering: Number that enters an average; None if missing.
        cells: Results behind each of our numbers; empty for published numbers.
        whole: Whether the numbers are for the paper's complete test set.
    """

    numbers: tuple[float | None, ...]
    entering: float | None
    cells: tuple[Cell | None, ...] = ()
    whole: bool = True

    @property
    def basis(self) -> tuple[str, bool]:
        """Split, and whether it is complete; all numbers of an average have the same."""
        cell = next(filter(None, self.cells), None)
        return (cell.split if cell else "", self.whole)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table.

    Attributes:
        name: Name of the row.
        ours: Whether the row is from runs.
        entries: Entries by column.
        average: Average by the paper's rule, over all columns; None if a column is missing.
        shared: Mean of the columns that all our rows have; None without such columns.
        parts: Our entries by the suite's columns, of which groups are the means.
        run_by: Names of the suite's rows that continue a published row.
    """

    name: str
    ours: bool
    entries: Mapping[str, Entry]
    average: float | None = None
    shared: float | None = None
    parts: Mapping[str, Entry] = field(default_factory=dict)
    run_by: tuple[str, ...] = ()


class RowNames:
    """Names of our rows: a suite's row, with the changes if a run changed its pipeline.

    Args:
        suite: The suite.
        files: The user's files with pipelines. A built-in row has built-in pipelines.
    """

    def __init__(self, suite: Suite, files: Sequence[ConfigSource]) -> None:
        self._suite = suite
        self._built_in, self._own = load_config(), load_config(files)

    def name(self, row: str, cell: Cell) -> str:
        """Returns `ROW`, `ROW [READER]` or `ROW [changed: PARAMETER=VALUE, …]`.

        Raises:
            UserError: The row's pipeline does not exist, or has faults.
        """
        pipelines = self._suite.tree.items["rows"].items[row].items["pipelines"]
        config = self._built_in if is_built_in(pipelines.file) else self._own
        declared = [p.resolved() for p in config.select([cell.pipeline])]
        if cell.stages in declared:
            return row
        fields = [*differing_fields(declared[0], cell.stages)]
        reader = readers_of(cell.stages)
        if reader != readers_of(declared[0]):
            fields = [change for change in fields if not change[0].startswith("reader")]
        else:
            reader = ""
        changes = [f"{path}={label_of(value):.40}" for path, _, value in fields]
        if len(changes) > _CHANGES:
            changes = [*changes[:_CHANGES], f"{len(changes) - _CHANGES} more"]
        changed = f"changed: {', '.join(changes)}" if changes else ""
        return f"{row} [{'; '.join(filter(None, (reader, changed)))}]"
