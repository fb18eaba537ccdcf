"""What the benchmarks' tasks share: rows to examples, each document once, in flat memory.

Two passes over a split. The first checks every row and keeps, of those on a document seen before,
all but the document: a zip or a bz2 cannot be sought, but whichever row comes first on a document
brings its text when the second pass meets it. So no text is ever kept, in memory or on the disk.
What the first pass finds is kept between runs, and is all that the second needs on any machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import tee
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.files import sha256, stamp
from leporello.core.records import JSON, DocumentRows, Example
from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.layouts import ForwardReader, LaidOut, Layout, cached_layout
from leporello.tasks.official.archives import Archive, check_split, data_directory, present
from leporello.tasks.official.validate import DocumentGroup, RowIndex, document_key, merged


@dataclass(frozen=True, slots=True)
class Published:
    """Where a split's file is published, and where it belongs.

    Attributes:
        repository: A data set on the hub.
        file: Path of the file in the repository.
        place: Path below the data directory.
    """

    repository: str
    file: str
    place: str


class Benchmark(LaidOut):
    """A task whose examples stand in the rows of a benchmark's file, one split a file.

    A class of it is a frozen dataclass with `split`, `data` and `take` or `take_all`, and with
    these attributes, or with an `archive` instead of them.

    Attributes:
        benchmark: Name of the benchmark, and of its folder in the data directory.
        by_hand: URL of files that `fetch` does not download.
    """

    benchmark: ClassVar[str]
    by_hand: ClassVar[str] = ""

    @property
    def splits(self) -> Sequence[str]:
        """Names of the splits."""
        return ("test",)

    @property
    def full_name(self) -> str:
        """The name of the benchmark, and of the task in it."""
        return "/".join(filter(None, (self.benchmark, getattr(self, "name", ""))))

    @property
    def archive(self) -> Archive:
        """The split's rows.

        Raises:
            UserError: There is no such split, or no such file.
        """
        task: Any = self
        check_split(self.full_name, task.split, self.splits)
        folder = data_directory(task.data) / self.benchmark
        return present(self.full_name, self.places(folder), self.by_hand)

    def places(self, folder: Path) -> Sequence[Archive]:
        """Returns where the split may lie in the benchmark's folder: where `fetch` puts it."""
        task: Any = self
        return (Archive(folder.parent / task.published.place),)

    def take(self, number: int, row: Mapping[str, Any]) -> Example | None:
        """Takes a row apart; None for one that is not of the task.

        Args:
            number: Number of the row, from 0.
            row: The row as the file has it.

        Returns:
            The example, its document without an id. What is wrong with its data is its `fault`.

        Raises:
            RowError: The row is none of this task: fields are missing, or of another type.
        """
        raise NotImplementedError

    def take_all(self, number: int, row: Mapping[str, Any]) -> Sequence[Example]:
        """Takes a row apart that may hold several examples on its document; as `take`."""
        taken = self.take(number, row)
        return [] if taken is None else [taken]

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:  # noqa: ARG002 -- part of `Sharded`
        """Yields the examples on documents of the layout; quick if they are later ones each time.

        An example whose data are faulty has a `fault`, and no references to be scored against.

        Raises:
            UserError: The file is not there, damaged, or has changed.
        """
        archive, [groups, ahead] = self.archive, tee(map(DocumentGroup.of, documents))
        rows = _row_reader(archive, stamp(archive.path)).items(group.number for group in ahead)
        for group in groups:
            _, content = next(rows, (0, b""))
            yield from _together(group, self._first(group, content), archive.path.name)

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the split's rows: the same from a zip as from a folder."""
        return str(self._layout().facts["sha256"])

    def _layout(self) -> Layout:
        """Returns all that is known of the examples on each document, but for its text.

        `bytes` is the size of the row that brings the text.
        """
        archive = self.archive
        return _cached_layout(self, archive, stamp(archive.path))

    def _first(self, group: DocumentGroup, content: bytes) -> Example:
        """Returns the example whose row brings a document's text."""
        try:
            taken = self.take_all(group.number, decode(content, strict=False))
        except RowError:
            taken = ()
        first = next(iter(group.examples))
        for example in taken:
            if (example.id, document_key(example.document)) == (first, group.key):
                return example
        raise _changed(self.archive)


@lru_cache(maxsize=16)
def _cached_layout(task: Benchmark, archive: Archive, stamp: tuple[int, int, int]) -> Layout:  # noqa: ARG001 -- a file with another stamp is read again
    index = RowIndex(task.take_all, archive)
    is_own = type(task).__module__.startswith("leporello.")  # a plug-in's code is not looked at
    key: JSON = [repr(task), str(archive), sha256(archive.path)] if is_own else None
    return cached_layout(key, index.read(), index.facts)


@lru_cache(maxsize=16)
def _row_reader(archive: Archive, stamp: tuple[int, int, int]) -> ForwardReader[tuple[int, bytes]]:  # noqa: ARG001 -- a file with another stamp is opened again
    return ForwardReader(archive.rows)


def _together(group: DocumentGroup, first: Example, file: str) -> Iterator[Example]:
    """Yields the examples on a document, in the order of their first rows."""
    document = dataclasses.replace(first.document, id=f"text-{group.key[:16]}")
    for line, known in group.examples.values():
        example = merged(first, known) if known.id == first.id else known
        fault = f"{file}:{line}: {example.fault}" if example.fault else ""
        references = () if fault else example.references
        yield dataclasses.replace(example, document=document, references=references, fault=fault)


def _changed(archive: Archive) -> UserError:
    return UserError(f"{archive}: has changed while it was read; run again")
