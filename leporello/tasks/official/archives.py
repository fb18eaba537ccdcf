"""Reads benchmarks' files row by row: JSON, JSON Lines, also in a zip or as bz2, and Parquet."""

import bz2
import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from leporello.core.environment.input_limits import ROW_BYTES
from leporello.core.errors import UserError, did_you_mean, few
from leporello.core.files import Stamp, at_home, opened, stamp
from leporello.storage import RemotePath, to_path
from leporello.tasks.jsonl.formats import Line, ParquetRows, lines

_BLOCK = 1 << 20  # bytes of rows that are decompressed at once
# Parts of a JSON list: an object without inner objects, and the end.
_OBJECT = re.compile(rb"""[\s,\[]*+(\{(?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+\})""", re.DOTALL)
_END = re.compile(rb"[\s,\[]*\]\s*")

# Exceptions for truncated or damaged files.
_DAMAGE = (EOFError, OSError, zipfile.BadZipFile, zlib.error)


def data_directory(folder: Path | None) -> Path:
    """Returns the folder of the benchmarks' files: `folder`, `LEPORELLO_DATA` or `data`."""
    path = folder or to_path(os.environ.get("LEPORELLO_DATA") or "data")
    return path if isinstance(path, RemotePath) else at_home(path)


@dataclass(frozen=True, slots=True)
class Archive:
    """The rows of a split, in their file."""

    # A zip, a bz2 file, JSON Lines, Parquet (rows are lines), or a JSON list of flat objects.
    path: Path
    members: tuple[str, ...] = ()  # names in a zip, of which the first that exists is read
    stamp: Stamp | None = None  # of the file, so that caches do not mix up versions of it

    def __str__(self) -> str:
        return f"{self.path} ({self.members[0]})" if self.members else str(self.path)

    def rows(self) -> Iterator[Line]:
        """Yields the rows, without blank lines; raises UserError if the file is damaged."""
        number = 0
        try:
            with opened(self.path) as file:
                for line in self._rows(file):
                    number = line.number
                    if line.content is None:
                        raise UserError(
                            f"{self}: line {number} has more than {ROW_BYTES // 2**20} MiB;"
                            " is this JSON Lines, one row per line?"
                        )
                    yield line
        except _DAMAGE as error:
            raise UserError(
                f"{self}: is truncated or damaged after line {number}:"
                f" {str(error) or type(error).__name__}; remove it and fetch it again"
            ) from None

    def _rows(self, file: BufferedReader) -> Iterator[Line]:
        if self.path.suffix == ".parquet":
            yield from ParquetRows(self.path, self.path, ROW_BYTES).rows()
        elif self.path.suffix == ".json" and file.peek(64).lstrip()[:1] == b"[":
            yield from _objects(file)
        else:
            with self._unpacked(file) as rows:
                yield from lines(rows, ROW_BYTES)

    @contextmanager
    def _unpacked(self, file: BufferedReader) -> Iterator[IO[bytes]]:
        if self.path.suffix == ".bz2":
            with bz2.open(file) as rows:
                yield rows
        elif self.members and self.path.suffix == ".zip":
            with zipfile.ZipFile(file) as archive, self._member(archive) as member:
                # A buffer finds the ends of long lines in C, much faster than ZipExtFile.readline.
                yield io.BufferedReader(cast(io.RawIOBase, member), _BLOCK)
        else:
            yield file

    def _member(self, archive: zipfile.ZipFile) -> IO[bytes]:
        names = archive.namelist()
        name = next((name for name in self.members if name in names), None)
        if name is None:
            listed = few(sorted(names)) or "nothing"
            raise UserError(f"{self.path}: has no {self.members[0]}; it contains {listed}")
        try:
            return archive.open(name)
        except (NotImplementedError, RuntimeError) as error:  # unknown compression, or a password
            raise UserError(f"{self}: cannot be unpacked: {error}") from None


def _objects(file: BufferedReader) -> Iterator[Line]:
    """Yields the objects of a JSON list, with the numbers of their first lines."""
    buffer, line = b"", 1
    while block := file.read(max(_BLOCK, len(buffer))):  # doubling keeps the time linear
        buffer, position = buffer + block, 0
        while row := _OBJECT.match(buffer, position):
            line += buffer.count(b"\n", position, row.start(1))
            yield Line(line, 0, len(row[1]), row[1])
            line, position = line + row[1].count(b"\n"), row.end()
        buffer = buffer[position:]
        if len(buffer) > ROW_BYTES:
            raise UserError(f"{file.name}: is not a list of flat objects from line {line} on")
    if not _END.fullmatch(buffer):
        raise EOFError(f"line {line} is neither a flat object nor the end of the list")


def check_split(task: str, split: str, splits: Sequence[str]) -> None:
    """Raises UserError if a task, such as `scrolls/qasper`, does not have a split."""
    if split not in splits:
        raise UserError(f"task {task} has no split {split!r}{did_you_mean(split, splits)}")


def present(task: str, archives: Sequence[Archive], source: str = "") -> Archive:
    """Returns the first archive that exists; without one, raises UserError with advice."""
    for archive in archives:
        if archive.path.exists():
            return replace(archive, stamp=stamp(archive.path))
    places = " nor ".join(str(archive.path) for archive in archives)
    advice = f"download it from {source}" if source else f"`fetch {task}` downloads it"
    raise UserError(
        f"task {task}: there is {'neither' if len(archives) > 1 else 'no'} {places};"
        f" {advice}, --data or LEPORELLO_DATA sets its folder"
    )
