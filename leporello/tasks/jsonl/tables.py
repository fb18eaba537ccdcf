"""Tables of columns: Parquet files, and Arrow's files and streams (Feather, `datasets`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.environment.extras import require
from leporello.core.environment.input_limits import EXPANDED_BYTES, EXPANDED_TIMES
from leporello.core.errors import UserError, did_you_mean
from leporello.tasks.jsonl.lines import Line

_TOGETHER = 8  # rows that are decoded at once: each may be as large as a row may be


@dataclass(slots=True)
class _ArrowRows(ABC):
    """A table as rows, in groups that can be read by themselves.

    Attributes:
        local: Path of the file on this machine.
        path: Path of the file as the user names it.
        limit: Bytes of a row at most.
        columns: Names of the columns that are read; all if empty.
    """

    seeks: ClassVar[bool] = False

    local: Path
    path: Path
    limit: int
    columns: tuple[str, ...]

    @abstractmethod
    def groups(self, offset: int) -> Iterator[tuple[int, int, Iterator[Any]]]:
        """Yields rows before it, number, and record batches of each group; batches as they come."""

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields the rows from this one on.

        Args:
            number: Number of the row.
            offset: Number of its group.
        """
        require(f"{self.path}: reading it", "pyarrow")
        with self._explained():
            for at, group, batches in self.groups(offset):
                for batch in batches:
                    yield from self._of(batch, at + 1, group, max(0, number - 1 - at))
                    at += batch.num_rows  # noqa: PLW2901 -- of the next batch

    def _of(self, batch: Any, first: int, group: int, skipped: int) -> Iterator[Line]:  # noqa: ANN401 -- pyarrow has no types
        for i in range(skipped, batch.num_rows):
            row = batch.slice(i, 1)
            size = row.nbytes
            content = row.to_pylist()[0] if size <= self.limit else None
            yield Line(first + i, group, size, content)

    def _named(self, names: list[str]) -> list[str]:
        """Returns the columns to read; raises UserError where one is not there."""
        for name in self.columns:
            if name not in names:
                raise UserError(f"{self.path}: has no column {name!r}{did_you_mean(name, names)}")
        return [*self.columns] or names

    @contextmanager
    def _explained(self) -> Iterator[None]:
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError) as error:
            text = str(error).partition("\n")[0]
            raise UserError(f"{self.path}: is damaged, or no table: {text}") from None


class ParquetRows(_ArrowRows):
    """A Parquet file; a group is a row group, of which some rows at a time are decoded."""

    def groups(self, offset: int) -> Iterator[tuple[int, int, Iterator[Any]]]:
        """Yields the row groups; see `_ArrowRows`."""
        from pyarrow import parquet

        with parquet.ParquetFile(self.local, memory_map=True, pre_buffer=False) as file:
            columns = self._named(file.schema_arrow.names)
            counts = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
            for group in range(offset, len(counts)):
                self._check_size(file.metadata.row_group(group))
                batches = file.iter_batches(_TOGETHER, row_groups=[group], columns=columns)
                yield sum(counts[:group]), group, batches

    def _check_size(self, group: Any) -> None:  # noqa: ANN401 -- pyarrow has no types
        """Refuses a bomb by what the file says of itself: a page is unpacked whole."""
        parts = [group.column(n) for n in range(group.num_columns)]
        packed = sum(part.total_compressed_size for part in parts)
        size = sum(part.total_uncompressed_size for part in parts)
        if size > max(EXPANDED_BYTES, EXPANDED_TIMES * packed):
            raise UserError(
                f"{self.path}: {packed:,} bytes of a row group expand to {size:,}, as no text does"
            )


class ArrowFile(_ArrowRows):
    """An Arrow file, which is Feather too; a group is a record batch."""

    def groups(self, offset: int) -> Iterator[tuple[int, int, Iterator[Any]]]:
        """Yields the record batches; see `_ArrowRows`."""
        import pyarrow

        with pyarrow.memory_map(str(self.local)) as mapped:
            yield from self._batches(pyarrow.ipc.open_file(mapped), offset)

    def _batches(self, reader: Any, offset: int) -> Iterator[tuple[int, int, Iterator[Any]]]:  # noqa: ANN401 -- pyarrow has no types
        names = self._named(reader.schema.names)
        before = 0
        for group in range(reader.num_record_batches):
            batch = reader.get_batch(group)  # what is before the offset is mapped, and not read
            if group >= offset:
                yield before, group, iter([batch.select(names)])
            before += batch.num_rows


class ArrowStream(_ArrowRows):
    """An Arrow stream, as `datasets` saves them; a group is a record batch."""

    def groups(self, offset: int) -> Iterator[tuple[int, int, Iterator[Any]]]:
        """Yields the record batches; see `_ArrowRows`."""
        import pyarrow

        before = 0
        with pyarrow.memory_map(str(self.local)) as mapped:
            reader = pyarrow.ipc.open_stream(mapped)
            names = self._named(reader.schema.names)
            for group, batch in enumerate(reader):  # mapped, too
                if group >= offset:
                    yield before, group, iter([batch.select(names)])
                before += batch.num_rows
