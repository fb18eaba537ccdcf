"""Rows of a file: JSON Lines, and Parquet and Arrow tables."""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

from leporello.core.environment.extras import require
from leporello.core.environment.input_limits import EXPANDED_BYTES, EXPANDED_TIMES
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import opened
from leporello.text.looks import looks_like

_HEAD = 1 << 12  # bytes from which the encoding is detected
_BLOCK = 1 << 20  # bytes that are skipped at once


class Line(NamedTuple):
    """A row of a file."""

    number: int  # number of the line or row, from 1, plus the `base` of its file
    offset: int  # position where reading must start to find the row: a byte, or a row group
    size: int
    content: bytes | Mapping[str, Any] | None  # JSON of an object, or the object; None if too large


@dataclass(frozen=True)
class FileRows:
    """Rows of a file."""

    seeks: ClassVar[bool] = True  # whether reading can start at any row

    local: Path  # path of the file on this machine
    path: Path  # path of the file as in the config
    limit: int  # largest size of a row in bytes; larger rows have no content
    base: int = 0  # number that is added to the numbers of rows

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields the rows from one on; raises UserError if the file is damaged."""
        raise NotImplementedError


def lines(file: IO[bytes], limit: int, number: int = 1, offset: int = 0) -> Iterator[Line]:
    """Yields the lines of an open file, except blank ones; at most one line is in memory."""
    while content := file.readline(limit + 1):
        size = len(content)
        # The rest of an oversized line is dropped in blocks, so that a decompression bomb costs no
        # memory. It keeps its number, like any row (decision 38).
        while size > limit and content and not content.endswith(b"\n"):
            content = file.readline(_BLOCK)
            size += len(content)
        if size > limit or not content.isspace():
            yield Line(number, offset, size, content if size <= limit else None)
        number, offset = number + 1, offset + size


class LineRows(FileRows):
    """Lines of a JSON Lines file."""

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields the lines, except blank ones; see `FileRows.rows`."""
        with opened(self.local) as file:
            if not offset:
                self._check_head(file.read(_HEAD))
            file.seek(offset)
            yield from lines(file, self.limit, self.base + number, offset)

    def _check_head(self, head: bytes) -> None:
        encoding = looks_like(head)
        if encoding.startswith(("UTF-16", "UTF-32")):
            raise UserError(
                f"{self.path}: is in {encoding}, but JSON Lines must be UTF-8; convert it:"
                f" iconv -f {encoding} -t UTF-8 {self.path.name} > utf8.jsonl"
            )
        is_json = head.removeprefix(BOM_UTF8).lstrip()[:1] in b"{["
        if self.path.suffix.lower() in (".csv", ".tsv") and not is_json:
            raise UserError(
                f"{self.path}: is a table as text, but a task needs JSON Lines, Parquet or Arrow;"
                " write each row as a JSON object in a line of its own"
            )


STREAM = b"\xff\xff\xff\xff"  # the beginning of an Arrow stream
# A row can contain a whole book, so a complete row group could take gigabytes (decision 38).
_ROWS = 8  # rows that are decoded at once, each up to the size limit


@dataclass(frozen=True)
class ArrowRows(FileRows):
    """An Arrow or Feather file, or a stream of `datasets`; offsets number its record batches."""

    # Offsets are groups, not rows; a seek would decode a group from its first row again.
    seeks: ClassVar[bool] = False

    columns: tuple[str, ...] = ()  # names of the columns to read; all if empty

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
                    yield Line(self.base + first + i, group, row.nbytes, content)

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
        import pyarrow

        is_stream = mapped.read(len(STREAM)) == STREAM
        mapped.seek(0)
        if is_stream:  # it has no index: batches before an offset are passed over in order
            stream = pyarrow.ipc.open_stream(mapped)
            return stream.schema.names, stream
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
