"""Names of our rows in a paper's table, which name what a run changed."""

from __future__ import annotations

from collections.abc import Sequence

from leporello.config import load_config
from leporello.config.built_in import is_built_in
from leporello.config.suites import Suite
from leporello.config.sweeps import label_of
from leporello.core.hashing import differing_fields
from leporello.core.yaml.tree import ConfigSource
from leporello.jobs.signature import readers_of
from leporello.suites.cells import Cell

_CHANGES = 3  # changed parameters in a name


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
            fields = [field for field in fields if not field[0].startswith("reader")]
        else:
            reader = ""
        changes = [f"{path}={label_of(value):.40}" for path, _, value in fields]
        if len(changes) > _CHANGES:
            changes = [*changes[:_CHANGES], f"{len(changes) - _CHANGES} more"]
        changed = f"changed: {', '.join(changes)}" if changes else ""
        return f"{row} [{'; '.join(filter(None, (reader, changed)))}]"
