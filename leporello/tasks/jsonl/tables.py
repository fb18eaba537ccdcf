"""Reads rows of Parquet files, and of Arrow files and streams (Feather, `datasets`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from leporello.core.environment.extras import require
from leporello.core.environment.input_limits import EXPANDED_BYTES, EXPANDED_TIMES
from leporello.core.errors import UserError, did_you_mean
from leporello.tasks.jsonl.lines import FileRows, Line

# A row can contain a whole book, so a complete row group could take gigabytes (decision 38).
_ROWS = 8  # rows that are decoded at once, each up to the size limit


@dataclass(frozen=True)
class ArrowRows(FileRows):
    """An Arrow or Feather file, whose record batches are read one by one.

    Offsets are numbers of record batches, or of row groups.

    Attributes:
        columns: Names of the columns to read; all if empty.
    """

    # Offsets are groups, not rows; a seek would decode a group from its first row again.
    seeks: ClassVar[bool] = False

    columns: tuple[str, ...]

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields rows; see `FileRows.rows`."""
        # An extra, used without `datasets`, which would also add pandas and dill to the base
        # install and copy everything to Arrow (decision 38).
        require(f"{self.path}: reading it", "pyarrow")
        with self._explained():
            for first, group, batch in self.batches(offset):
                for i in range(max(0, number - first), batch.num_rows):
                    row = batch.slice(i, 1)
                    content = row.to_pylist()[0] if row.nbytes <= self.limit else None
                    yield Line(first + i, group, row.nbytes, content)

    def batches(self, offset: int) -> Iterator[tuple[int, int, Any]]:
        """Yields batches from an offset on: number of the first row, number of the group, batch."""
        import pyarrow

        with pyarrow.memory_map(str(self.local)) as mapped:
            names, batches = self._open(mapped)
            columns, first = self._selected(names), 1
            for group, batch in enumerate(batches):  # batches before the offset are not read
                if group >= offset:
                    yield first, group, batch.select(columns)
                first += batch.num_rows

    def _open(self, mapped: Any) -> tuple[list[str], Iterable[Any]]:  # noqa: ANN401 -- pyarrow has no types
        """Returns the names of the columns, and all batches."""
        import pyarrow

        reader = pyarrow.ipc.open_file(mapped)
        return reader.schema.names, map(reader.get_batch, range(reader.num_record_batches))

    def _selected(self, names: list[str]) -> list[str]:
        """Returns the columns to read; raises UserError for an unknown column."""
        for name in self.columns:
            if name not in names:
                raise UserError(f"{self.path}: has no column {name!r}{did_you_mean(name, names)}")
        return [*self.columns] or names

    @contextmanager
    def _explained(self) -> Iterator[None]:
        import pyarrow

        # Named before, since a generator that is open at exit outlives the module's contents.
        faults = (pyarrow.ArrowException, OSError)
        try:
            yield
        except faults as error:
            text = str(error).partition("\n")[0]
            raise UserError(f"{self.path}: is damaged, or is not a table: {text}") from None


class ArrowStream(ArrowRows):
    """An Arrow stream, as `datasets` saves it."""

    def _open(self, mapped: Any) -> tuple[list[str], Iterable[Any]]:  # noqa: ANN401 -- pyarrow has no types
        import pyarrow

        reader = pyarrow.ipc.open_stream(mapped)
        # A stream has no index: batches before an offset are passed over in order.
        return reader.schema.names, reader


class ParquetRows(ArrowRows):
    """A Parquet file, which is decoded a few rows at a time."""

    def batches(self, offset: int) -> Iterator[tuple[int, int, Any]]:
        """Yields batches of the row groups; see `ArrowRows`."""
        from pyarrow import parquet

        # Pre-buffering would load all pages of a row group before the first row.
        with parquet.ParquetFile(self.local, memory_map=True, pre_buffer=False) as file:
            columns, first = self._selected(file.schema_arrow.names), 1
            for group in range(file.num_row_groups):
                metadata, row_number = file.metadata.row_group(group), first
                first += metadata.num_rows
                if group >= offset:
                    self._check_size(metadata)
                    for batch in file.iter_batches(_ROWS, row_groups=[group], columns=columns):
                        yield row_number, group, batch
                        row_number += batch.num_rows

    def _check_size(self, group: Any) -> None:  # noqa: ANN401 -- pyarrow has no types
        """Refuses decompression bombs by the sizes in the metadata, before unpacking a page."""
        parts = [group.column(n) for n in range(group.num_columns)]
        packed = sum(part.total_compressed_size for part in parts)
        size = sum(part.total_uncompressed_size for part in parts)
        if size > max(EXPANDED_BYTES, EXPANDED_TIMES * packed):
            raise UserError(
                f"{self.path}: {packed:,} bytes of a row group expand to {size:,}, too much text"
            )
