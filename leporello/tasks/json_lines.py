"""Tasks of the user's own questions, from files with one question per row."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

from leporello.core.environment.input_limits import ROW_BYTES
from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean
from leporello.core.files import Stamp, at_home
from leporello.core.protocols import Loader, Positive
from leporello.core.records import JSON, Document, DocumentRows, Example
from leporello.loaders.collection import collection_hash, load_collection
from leporello.loaders.files import file_hash, load
from leporello.storage import RemotePath, is_url, to_path
from leporello.tasks.jsonl.finding import find_files
from leporello.tasks.jsonl.row_files import RowFiles, RowReader, check_columns
from leporello.tasks.jsonl.scan import Scan
from leporello.tasks.jsonl.schema import Row, RowError, located
from leporello.tasks.layouts import LaidOut, Layout, cached_layout
from leporello.text.typed.schema import schema_of

_log = logging.getLogger("leporello")

_TOO_LARGE = "the row is larger than max_row_bytes, {:,} bytes expanded; is each line one row?"


class _RowAt(NamedTuple):
    """A row with its file and line, and the reason why it could not be read, if any."""

    place: str
    row: Row
    fault: str


@dataclass(frozen=True)
class JsonLines(LaidOut):
    """Questions from JSON Lines files, with one object per line.

    A row has an `id` and a document: `document` (the text), `document_path` (a file of any format),
    `documents` (files and folders that form one document), `collection` (the name of a collection)
    or `document_id`. It may have `question`, `references`, `choices`, `evidence`, `title`, `group`
    and `metadata`. Rows with the same `document_id`, path or text share a document; with
    `document_id`, only one of them needs to contain it. They need not follow each other.

    Attributes:
        path: Path of a file or folder, a pattern (`rows-*.jsonl.gz`), `hf://datasets/` and the name
            of a data set, or a URL; `{split}` in it is replaced by the split. Files compressed with
            gzip, bzip2, zstd or xz are unpacked once, to the cache.
        instruction: Instruction, which precedes the passages in a prompt.
        ignore: Fields of the rows to ignore; other unknown fields are faults.
        split: Name of the split, which replaces `{split}` in the path; or of a data set's split.
        columns: Names of these fields in the rows: `{question: query, references: answers.text}`;
            other columns are then ignored. Rows without `id` are named by their numbers.
        collections: Paths, patterns and URLs by name, for rows with `collection`; by default the
            config's `collections`.
        max_row_bytes: Largest size of a row in bytes, expanded; only the examples of larger rows
            fail.
        loader: Loader for the documents' files that it supports; other files have built-in loaders.
        answer: Type of the answers of rows without `answer`, such as `date` or `{type: number,
            minimum: 0}` (docs/typed-answers.md).
        no_answer: Reference of questions that the document does not answer.
    """

    metrics: ClassVar[tuple[str, ...]] = ("f1",)

    path: Path
    instruction: str = ""
    ignore: tuple[str, ...] = ()
    split: str = ""
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    collections: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    max_row_bytes: Positive = ROW_BYTES
    loader: Loader | None = field(default=None, hash=False)
    answer: Mapping[str, Any] | str | None = field(default=None, hash=False)
    no_answer: str = ""

    def __post_init__(self) -> None:
        check_columns(self.columns)
        schema_of(self._answer)

    @property
    def _answer(self) -> JSON:
        return dict(self.answer) if isinstance(self.answer, Mapping) else self.answer

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the split, in order; without any, raises UserError."""
        return find_files(self.path, self.split)

    def check(self) -> None:
        """Checks all rows, without the documents; raises ConfigError with all faults."""
        self._layout()

    def check_documents(self) -> None:
        """Checks all rows and that the documents' files can be read; raises ConfigError."""
        faults = [
            Fault(*self._source.place(place["at"][0][0]), f"document_path: {error}")
            for place, error in self._hashes()
            if isinstance(error, UserError)
        ]
        if faults:
            raise ConfigError(faults)

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:  # noqa: ARG002 -- part of `Sharded`
        """Yields the examples on documents of the layout, reading only their rows.

        If a document's file cannot be read, or evidence is not in it, its examples have a `fault`.
        """
        reader = RowReader(self._source)
        for document in documents:
            rows = self._rows(document, reader)
            yield from self._examples(rows, *self._opened(rows))

    def closed(self, document: DocumentRows, fault: str) -> Iterator[Example]:
        """Yields the examples on a document with this fault, without opening the document."""
        rows = self._rows(document, RowReader(self._source))
        empty = Document(rows[0].row.key, "", _title(rows))
        yield from self._examples(rows, empty, f"document_path: {fault}")

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the files and of the documents' files.

        Files that cannot be read are reported in a warning, and change the hash.
        """
        digest = hashlib.sha256(bytes.fromhex(self._source.sha256()))
        hashes = {place["source"]: value for place, value in self._hashes()}
        for source, value in hashes.items():
            # A missing file fails only its examples. If it appears later, the hash changes.
            digest.update(f"{source}\0".encode() + (value if isinstance(value, bytes) else b""))
        faults = [value for value in hashes.values() if isinstance(value, UserError)]
        if faults:
            problem = f"{len(faults)} of {len(hashes)} documents' files cannot be read, and the"
            more = ", …" if len(faults) > 1 else ""
            _warn(f"{self.path}: {problem} examples on them will fail: {faults[0]}{more}")
        return digest.hexdigest()

    def _hashes(self) -> Iterator[tuple[Mapping[str, Any], bytes | UserError]]:
        """Yields the places of documents in files, with the files' hashes or errors."""
        for place in map(_place_of, self._layout()):
            try:
                if "source" in place:
                    paths = self._paths(place["source"])
                    yield (
                        place,
                        file_hash(paths) if isinstance(paths, Path) else collection_hash(paths),
                    )
            except UserError as error:
                yield place, error

    @property
    def _source(self) -> RowFiles:
        return RowFiles(self.files, self.max_row_bytes, self.ignore, self.columns)

    def _layout(self) -> Layout:
        """Returns the rows of each document, as [line, offset, count] of runs of adjacent rows."""
        return _cached_layout(self, self._source.stamp())

    def _paths(self, source: str) -> Path | Sequence[str | Path]:
        """Returns the path of a document, or the paths of one that consists of several."""
        match json.loads(source):
            case {"collection": name}:
                if name not in self.collections:
                    hint = did_you_mean(name, self.collections)
                    raise UserError(f"there is no collection {name!r}{hint}")
                return self.collections[name]
            case [*paths]:
                return [*map(self._absolute, paths)]
            case path:
                return self._absolute(path)

    def _absolute(self, document_path: str) -> Path:
        """Returns the path of a document, resolved from the common folder of the files of rows."""
        files = self.files
        if is_url(document_path):
            path = to_path(document_path)
            if isinstance(files[0], RemotePath) and not isinstance(path, RemotePath):
                text = f"is a file on this machine, but {files[0]} is remote"
                raise UserError(f"{document_path}: {text}")
            return path
        if isinstance(files[0], RemotePath):
            return files[0].parent / document_path
        return Path(os.path.commonpath([file.parent for file in files])) / at_home(document_path)

    def _rows(self, document: DocumentRows, reader: RowReader) -> list[_RowAt]:
        """Returns the rows on a document, of which only the first that has its text keeps it."""
        rows: list[_RowAt] = []
        for first, offset, count in _place_of(document)["at"]:
            lines = [*reader.read(first, offset, count)]
            if len(lines) < count:
                raise self._changed()
            for line in lines:
                try:
                    row = reader.source.row(line)
                except RowError:
                    raise self._changed() from None
                if row.document is not None and _source(rows):  # a book may have 300 questions
                    row = row.model_copy(update={"document": None})
                file, number = reader.source.place(line.number)
                large = _TOO_LARGE.format(self.max_row_bytes) if line.content is None else ""
                rows.append(_RowAt(f"{file.name}:{number}", row, large))
        return rows

    def _changed(self) -> UserError:
        return UserError(f"{self.path}: has changed while it was read; run again")

    def _opened(self, rows: Sequence[_RowAt]) -> tuple[Document, str]:
        """Returns the document; or an empty one, with the reason why it could not be read."""
        source, title, key = _source(rows), _title(rows), rows[0].row.key
        if source is None:
            return Document(key, ""), f"document {key!r}: no row with its text could be read"
        if not source.source:
            return Document(key, source.document or "", title), ""
        paths = None
        try:
            paths = self._paths(source.source)
            if isinstance(paths, Path):
                document = load(paths, key, self.loader)
            else:
                document = load_collection(paths, key, loader=self.loader)
        except UserError as error:
            problem = str(error)
        except Exception as error:  # libraries raise anything on broken files
            problem = f"{paths}: {type(error).__name__}: {error}"
        else:
            return dataclasses.replace(document, id=key, title=title or document.title), ""
        return Document(key, "", title), f"document_path: {problem}"

    def _examples(
        self, rows: Sequence[_RowAt], document: Document, problem: str
    ) -> Iterator[Example]:
        for place, row, row_fault in rows:
            fault = row_fault or problem
            try:
                evidence = located(() if fault else row.evidence, document)
            except RowError as error:
                fault, evidence = str(error), ()
            yield Example(
                id=row.id,
                document=document,
                question=row.question,
                instruction=self.instruction,
                choices=tuple(row.choices),
                references=tuple(row.references),
                evidence=evidence,
                group=row.group,
                metadata=row.metadata,
                schema=schema_of(row.answer) or schema_of(self._answer),
                fault=f"{place}: {fault}" if fault else "",
            )


@lru_cache(maxsize=8)
def _cached_layout(task: JsonLines, stamp: tuple[Stamp, ...]) -> Layout:  # noqa: ARG001 -- changed files have another stamp
    """Returns the layout of all rows, checked; it is computed once for all runs."""
    source = task._source
    settings: list[JSON] = [[*sorted(task.ignore)], dict(task.columns)]
    key: JSON = ["JsonLines", source.sha256(), *settings, task.max_row_bytes]
    layout = cached_layout(key, lambda _: Scan(source).documents())
    if not layout.examples:
        raise UserError(f"{task.path}: has no rows")
    return layout


def _place_of(document: DocumentRows) -> Mapping[str, Any]:
    """Returns the positions of a document's rows, `at`, and the `source` of its file, if any."""
    return cast("Mapping[str, Any]", document.rows)


def _source(rows: Sequence[_RowAt]) -> Row | None:
    """Returns the first row with the document's text or file."""
    sources = (row for _, row, _ in rows if row.document is not None or row.source)
    return next(sources, None)


def _title(rows: Sequence[_RowAt]) -> str:
    return next((row.title for _, row, _ in rows if row.title), "")


@cache
def _warn(text: str) -> None:
    """Warns once per process: a run computes the fingerprint twice."""
    _log.warning(text)


@dataclass(frozen=True)
class Table(JsonLines):
    """Questions from Parquet, Arrow and Feather files, and from folders that `datasets` saved.

    A row of the table is a row of `JsonLines`, which reads these files too; `columns` maps fields
    to columns.
    """
