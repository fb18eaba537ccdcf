"""The benchmarks' own files, row by row: JSON Lines as they are, in a zip, or as bz2; JSON."""

from __future__ import annotations

import bz2
import io
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from leporello.core.environment.input_limits import ROW_BYTES
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import at_home, opened
from leporello.storage import RemotePath, to_path

_BLOCK = 1 << 20  # bytes of rows that are decompressed at once
# Bytes of a JSON list: an object in which there is none, and the end.
_OBJECT = re.compile(rb"""[\s,\[]*+(\{(?:[^"{}]++|"(?:[^"\\]++|\\.)*+")*+\})""", re.DOTALL)
_END = re.compile(rb"[\s,\[]*\]\s*")
_SHOWN = 8  # members of a zip that a message names

# What reading a file that is cut off, or damaged, may raise.
_DAMAGE = (EOFError, OSError, zipfile.BadZipFile, zlib.error)


def data_directory(folder: Path | None) -> Path:
    """Returns where the benchmarks' files lie: as given, else `LEPORELLO_DATA`, else `data`."""
    path = folder or to_path(os.environ.get("LEPORELLO_DATA") or "data")
    return path if isinstance(path, RemotePath) else at_home(path)


@dataclass(frozen=True, slots=True)
class Archive:
    """One split's rows, and the file that holds them.

    Attributes:
        path: A zip, a bz2 file, plain JSON Lines, or a JSON list of objects without inner ones.
        members: Names that the rows may have in a zip; the first that is there is read.
    """

    path: Path
    members: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path} ({self.members[0]})" if self.members else str(self.path)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yields the lines, blank ones too, each behind its number from 1, in the memory of one.

        Raises:
            UserError: The file cannot be read, is cut off or damaged, or has no such member.
        """
        number = 0
        with opened(self.path) as file:
            try:
                if self.path.suffix == ".json" and file.peek(64).lstrip()[:1] == b"[":
                    for number, row in _objects(file):
                        yield number, row
                    return
                with self._unpacked(file) as rows:
                    for number, line in enumerate(iter(partial(rows.readline, ROW_BYTES), b""), 1):
                        if len(line) == ROW_BYTES:
                            raise UserError(
                                f"{self}: line {number} has more than {ROW_BYTES // 2**20} MiB, the"
                                " most; is this JSON Lines, one row a line?"
                            )
                        yield number, line
            except _DAMAGE as error:
                raise UserError(
                    f"{self}: is cut off or damaged after line {number}:"
                    f" {str(error) or type(error).__name__}; remove it and fetch it again"
                ) from None

    def rows(self) -> Iterator[tuple[int, bytes]]:
        """Yields the lines that are not blank; see `lines`."""
        return ((number, line) for number, line in self.lines() if not line.isspace())

    @contextmanager
    def _unpacked(self, file: BufferedReader) -> Iterator[IO[bytes]]:
        if self.path.suffix == ".bz2":
            with bz2.open(file) as rows:
                yield rows
        elif self.members and self.path.suffix == ".zip":
            with zipfile.ZipFile(file) as archive, self._member(archive) as member:
                # Its own readline takes a long row apart; a buffer around it finds line ends in C.
                yield io.BufferedReader(cast(io.RawIOBase, member), _BLOCK)
        else:
            yield file

    def _member(self, archive: zipfile.ZipFile) -> IO[bytes]:
        names = archive.namelist()
        name = next((name for name in self.members if name in names), None)
        if name is None:
            listed = ", ".join(sorted(names)[:_SHOWN]) or "nothing"
            raise UserError(f"{self.path}: has no {self.members[0]}; it holds {listed}")
        try:
            return archive.open(name)
        except (NotImplementedError, RuntimeError) as error:  # a method unknown here; a password
            raise UserError(f"{self}: cannot be unpacked: {error}") from None


def _objects(file: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Yields the objects of a JSON list, each behind the line where it begins."""
    held, line = b"", 1
    while block := file.read(max(_BLOCK, len(held))):  # doubled: each byte is looked at few times
        held, at = held + block, 0
        while row := _OBJECT.match(held, at):
            line += held.count(b"\n", at, row.start(1))
            yield line, row[1]
            line, at = line + row[1].count(b"\n"), row.end()
        held = held[at:]
        if len(held) > ROW_BYTES:
            raise UserError(f"{file.name}: from line {line} on, there is no list of plain objects")
    if not _END.fullmatch(held):
        raise EOFError(f"no plain object, nor the list's end, at line {line}")


def zip_or_folder(folder: Path, zipped: str, *members: str) -> tuple[Archive, Archive]:
    """Returns where a split may lie that is published in a zip: unpacked, or in the zip."""
    return Archive(folder / members[0]), Archive(folder / zipped, members)


def check_split(task: str, split: str, splits: Sequence[str]) -> None:
    """Checks that a task, such as `scrolls/qasper`, has a split.

    Raises:
        UserError: It does not.
    """
    if split not in splits:
        raise UserError(f"task {task} has no split {split!r}{did_you_mean(split, splits)}")


def present(task: str, archives: Sequence[Archive], source: str = "") -> Archive:
    """Returns the first of the places where a task's split may lie that has a file.

    Args:
        task: Name of the task, for messages.
        archives: Places, the first ones before the later.
        source: Where to get it by hand; empty if `fetch` does.

    Raises:
        UserError: None has.
    """
    for archive in archives:
        if archive.path.exists():
            return archive
    places = " nor ".join(str(archive.path) for archive in archives)
    got = f"it is at {source}" if source else f"`fetch {task}` downloads it"
    raise UserError(
        f"task {task}: there is {'neither' if len(archives) > 1 else 'no'} {places};"
        f" {got}, --data or LEPORELLO_DATA say where it lies"
    )
