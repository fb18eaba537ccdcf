"""Base class of the benchmarks' tasks, which turns rows into examples in constant memory.

A split is read once: every row is checked, and the examples and the text of each document are
stored in a layout, which is cached between runs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.errors import ConfigError, EmptySubsetError, Fault, UserError
from leporello.core.files import sha256
from leporello.core.records import JSON, Document, DocumentRows, Example, Span
from leporello.tasks.jsonl.formats import Line
from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.layouts import LaidOut, Layout, cached_layout
from leporello.tasks.official.archives import Archive, check_split, data_directory, present

_MOST_FAULTS = 20  # reading stops after as many
_NOWHERE = Document("", "")
_FIELDS = tuple(f.name for f in dataclasses.fields(Example) if f.name != "document")


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
        members: Possible paths of a split in a zip; the first is also that of an unpacked zip, and
            `{folder}` is the name of the zip.
        by_hand: URL for a manual download, without a repository.
    """

    split: str
    data: Path | None
    benchmark: ClassVar[str]
    repository: ClassVar[str] = ""
    file: ClassVar[str]
    members: ClassVar[tuple[str, ...]] = ("{folder}/{split}.jsonl", "{split}.jsonl")
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
        """Returns the possible archives of the split."""
        path = folder / self._file.removeprefix("data/")
        if path.suffix != ".zip":
            return (Archive(path),)
        fields = {"folder": path.stem, "name": getattr(self, "name", ""), "split": self.split}
        members = tuple(member.format(**fields) for member in self.members)
        return Archive(folder / members[0]), Archive(path, members)

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
            examples = [*_stored_examples(document.rows, layout)]
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
    return cached_layout(key, lambda store: RowIndex(task, archive, store).read())


@dataclass(slots=True)
class _Group:
    """The examples on a document, without its text."""

    document: dict[str, JSON]  # the text's place, and other fields of `Document`
    key: str  # key of the document, from `_key`
    size: int  # size of the document's first row, in bytes
    # Lines of first rows, with examples, by id in the order of the rows.
    examples: dict[str, tuple[int, Example]] = field(default_factory=dict)


class RowIndex:
    """Checks rows, and groups examples by document."""

    def __init__(self, task: Benchmark, archive: Archive, store: Callable[[bytes], int]) -> None:
        """Takes a function that stores the text of documents, and returns its start."""
        self._take, self._archive, self._store = task._take, archive, store
        self._faults: list[Fault] = []
        self._documents: dict[str, _Group] = {}  # by key
        self._groups: dict[str, _Group] = {}  # by id of examples

    def read(self) -> Iterator[DocumentRows]:
        """Reads all rows, then yields the documents in the order of their first rows."""
        number = -1
        for number, line in enumerate(self._archive.rows()):
            self._row(number, line)
        if self._faults:
            raise ConfigError(self._faults)
        if not self._documents:
            if number < 0:
                raise UserError(f"{self._archive}: has no rows")
            fault = f"none of its {number + 1} rows belongs to this task"
            raise EmptySubsetError(f"{self._archive}: {fault}")
        groups = self._documents.values()
        has_gold = any(e.references or e.fault for g in groups for _, e in g.examples.values())
        for group in groups:
            examples: list[JSON] = [
                self._packed(line, example, has_gold=has_gold)
                for line, example in group.examples.values()
            ]
            rows: JSON = {"key": group.key, **group.document, "examples": examples}
            yield DocumentRows(len(examples), group.size, rows)

    def _row(self, number: int, line: Line) -> None:
        try:
            for example in self._take(number, decode(line.content, strict=False)):
                self._group(line, example)
        except RowError as error:
            self._faults += [Fault(self._archive.path, line.number, text) for text in error.faults]
            if len(self._faults) >= _MOST_FAULTS:
                last = Fault(self._archive.path, line.number, "… reading stopped here")
                raise ConfigError([*self._faults, last]) from None

    def _group(self, line: Line, example: Example) -> None:
        if not example.id:
            raise RowError(["the row's id is empty"])
        document, key = example.document, _key(example.document)
        if earlier := self._groups.get(example.id):
            _merge(earlier, key, example)
            return
        if not (group := self._documents.get(key)):
            text = document.text.encode()
            fields: dict[str, JSON] = {"text": [self._store(text), len(text)]}
            fields |= {"title": document.title, "parts": [[p.start, p.end] for p in document.parts]}
            group = self._documents[key] = _Group(fields, key, line.size)
        group.examples[example.id] = line.number, dataclasses.replace(example, document=_NOWHERE)
        self._groups[example.id] = group

    def _packed(self, line: int, example: Example, *, has_gold: bool) -> dict[str, JSON]:
        """Returns an example for the layout, which has either references or a fault."""
        fault = example.fault
        if has_gold and not fault and not example.references:
            fault = "no gold answer, although other rows of the file have one"
        if fault:
            fault = f"{self._archive.path.name}:{line}: {fault}"
            example = dataclasses.replace(example, references=(), fault=fault)
        fields = {name: value for name in _FIELDS if (value := getattr(example, name))}
        if example.evidence:
            fields["evidence"] = [[span.start, span.end] for span in example.evidence]
        return {n: [*value] if isinstance(value, tuple) else value for n, value in fields.items()}


def _merge(group: _Group, key: str, further: Example) -> None:
    """Adds the references and fault of another row of an example."""
    line, stored = group.examples[further.id]
    differing = "question" if stored.question != further.question else ""
    if differing := "document" if group.key != key else differing:
        raise RowError([f"id {further.id!r} has another {differing} on line {line}"])
    references, fault = stored.references + further.references, stored.fault or further.fault
    merged = dataclasses.replace(stored, references=references, fault=fault)
    group.examples[further.id] = line, merged


def _key(document: Document) -> str:
    """Returns a hash of a document's text and parts; rows with the same hash share it."""
    digest = hashlib.sha256(document.text.encode())
    for part in document.parts:
        digest.update(b"%d-%d " % (part.start, part.end))
    return digest.hexdigest()


def _stored_examples(rows: Any, layout: Layout) -> Iterator[Example]:  # noqa: ANN401 -- JSON
    """Yields the examples on a document of `RowIndex`; none if the layout is of other data."""
    parts = tuple(Span(*ends) for ends in rows["parts"])
    text, name = layout.text(*rows["text"]), f"text-{rows['key'][:16]}"
    document = Document(name, text, rows["title"], parts=parts)
    for packed in rows["examples"] if _key(document) == rows["key"] else ():
        fields: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in packed.items()
        }
        fields["evidence"] = tuple(Span(*ends) for ends in packed.get("evidence", ()))
        yield Example(document=document, **fields)


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
