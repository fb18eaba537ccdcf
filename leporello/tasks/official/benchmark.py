"""Base class of the benchmarks' tasks, which turns rows into examples in constant memory.

A split is read once: every row is checked, and the examples and the text of each document are
stored in a layout, which is cached between runs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.files import sha256
from leporello.core.records import JSON, DocumentRows, Example
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.layouts import LaidOut, Layout, cached_layout
from leporello.tasks.official.archives import (
    Archive,
    check_split,
    data_directory,
    present,
    zip_or_folder,
)
from leporello.tasks.official.validate import RowIndex, stored_examples


@dataclass(frozen=True, slots=True)
class Published:
    """Source of a split's file, and its place in the data directory."""

    repository: str  # a data set on the hub
    file: str  # path of the file in the repository
    place: str  # path below the data directory


class Benchmark(LaidOut):
    """A task whose examples are rows of a benchmark's file, with one file per split.

    Subclasses are frozen dataclasses with `_take`, and with these attributes or an `archive`.

    Attributes:
        name: Name of the task in the benchmark.
        split: Always `test`.
        data: Directory of the benchmarks' files. None means `LEPORELLO_DATA` or `data`.
        benchmark: Name of the benchmark, and of its folder in the data directory.
        repository: Data set on the hub from which `fetch` downloads the files; may be empty.
        file: Path of a file in the repository, with `{name}` and `{split}` of the task.
        by_hand: URL for a manual download, without a repository.
    """

    split: str
    data: Path | None
    benchmark: ClassVar[str]
    repository: ClassVar[str] = ""
    file: ClassVar[str]
    by_hand: ClassVar[str] = ""

    @property
    def splits(self) -> Sequence[str]:
        """Names of the splits."""
        return ("test",)

    @property
    def full_name(self) -> str:
        """Name of the benchmark and of the task."""
        return "/".join(filter(None, (self.benchmark, getattr(self, "name", ""))))

    @property
    def archive(self) -> Archive:
        """The split's rows; raises UserError if the split or the file does not exist."""
        check_split(self.full_name, self.split, self.splits)
        folder = data_directory(self.data) / self.benchmark
        return present(self.full_name, self._places(folder), self.by_hand)

    @property
    def _file(self) -> str:
        return self.file.format(name=getattr(self, "name", ""), split=self.split)

    @property
    def published(self) -> Published | None:
        """The split's file on the hub, if any; raises UserError for another split."""
        if not self.repository:
            return None
        check_split(self.full_name, self.split, self.splits)
        place = f"{self.benchmark}/{self._file.removeprefix('data/')}"
        return Published(self.repository, self._file, place)

    def _places(self, folder: Path) -> Sequence[Archive]:
        """Returns the possible archives of the split; a zip contains one file per split."""
        path = folder / self._file.removeprefix("data/")
        if path.suffix != ".zip":
            return (Archive(path),)
        split = f"{self.split}.jsonl"
        return zip_or_folder(folder, path.name, f"{path.stem}/{split}", split)

    def _take(self, number: int, row: Mapping[str, Any]) -> Iterable[Example]:
        """Parses the row of this number from 0 into examples; none if it is not of the task.

        The examples' documents have no ids. Faults of the data are in their `fault`; missing fields
        and wrong types raise RowError.
        """
        raise NotImplementedError

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:  # noqa: ARG002 -- part of `Sharded`
        """Yields the examples on documents of the layout.

        An example with faulty data has a `fault` and no references. Raises UserError if the file is
        damaged, or has changed.
        """
        layout = self._layout()
        for document in documents:
            examples = [*stored_examples(document.rows, layout)]
            if not examples:
                raise UserError(f"{self.archive}: has changed while it was read; run again")
            yield from examples

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the split's file, after checking its rows."""
        self._layout()
        return sha256(self.archive.path)

    def _layout(self) -> Layout:
        return _cached_layout(self, self.archive)


@lru_cache(maxsize=16)
def _cached_layout(task: Benchmark, archive: Archive) -> Layout:
    is_built_in = type(task).__module__.startswith("leporello.")  # the key lacks a plug-in's code
    key: JSON = [repr(task), str(archive), sha256(archive.path)] if is_built_in else None
    return cached_layout(key, lambda store: RowIndex(task._take, archive, store).read())


def text_of(row: Mapping[str, Any], name: str) -> str:
    """Returns a field; raises RowError if it is missing or not text."""
    if not isinstance(value := _field(row, name), str):
        raise RowError([f"field {name!r} must be text, got {json.dumps(value):.60}"])
    return value


def _field(row: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 -- any JSON
    if name not in row:
        raise RowError([f"field {name!r} is missing; the row has {', '.join(row) or 'none'}"])
    return row[name]


def outputs(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the gold answers of a row, which may be missing; raises RowError for other types."""
    value = row.get("output")
    listed = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in listed):
        raise RowError([f"field 'output' must be text, got {json.dumps(value):.60}"])
    return tuple(listed)


def texts_of(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Returns a list of texts, empty for null; raises RowError if it is missing or another type."""
    value = [] if _field(row, name) is None else row[name]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise RowError([f"field {name!r} must be a list of texts, got {value!r:.60}"])
    return tuple(value)


def one_of(row: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    """Returns a field; raises RowError if its value is not allowed."""
    if (value := row.get(name)) not in allowed:
        raise RowError([f"field {name!r} must be one of {', '.join(allowed)}, got {value!r:.60}"])
    return str(value)
