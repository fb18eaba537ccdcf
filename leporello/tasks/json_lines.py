"""Tasks of one's own: files of rows, one question a row."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

from leporello.core.environment.input_limits import ROW_BYTES
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import at_home
from leporello.core.protocols import Loader, MetricEntry, Positive
from leporello.core.records import JSON, Document, DocumentRows, Example, Span
from leporello.loaders.collection import collection_hash, load_collection
from leporello.loaders.files import file_hash, load, load_bytes
from leporello.metrics import check_metrics
from leporello.storage import RemotePath, is_url, to_path
from leporello.tasks.jsonl.columns import check_columns
from leporello.tasks.jsonl.finding import find_files
from leporello.tasks.jsonl.row_files import RowFiles, RowReader
from leporello.tasks.jsonl.scan import Scan
from leporello.tasks.jsonl.schema import Row, RowError, located, sources
from leporello.tasks.layouts import LaidOut, Layout, cached_layout
from leporello.text.typed.schema import schema_of

_log = logging.getLogger("leporello")

_TOO_LARGE = "the row is larger than max_row_bytes, {:,} bytes expanded; is each line one row?"


class _RowAt(NamedTuple):
    """A row behind its number, and why it could not be read, if so."""

    number: int
    row: Row
    fault: str


@dataclass(frozen=True)
class JsonLines(LaidOut):
    """Questions from JSON Lines files, one object a line.

    A row has `id`, its document as `document` (the text), `document_path` (a file of any format
    that is read), `documents` (files and folders as one), `collection` (the name of such) or
    `document_id`, and `question`, `references`, `choices`, `evidence`, `title`, `group`, `metadata`
    as far as there are any. Rows that share a `document_id` share the
    document, which one of them gives; so do rows with the same path or text. They need not stand
    together, unless `adjacent` says so.

    Attributes:
        path: Path of the file, of a folder of them, a pattern (`rows-*.jsonl.gz`), `hf://datasets/`
            and a data set's name, or a URL; `{split}` in it stands for the split. What is
            compressed with gzip, bzip2, zstd or xz is unpacked once, to the cache.
        instruction: The prompt, put before what is read.
        metrics: Metrics that predictions are scored with: names, `./file.py:Class`, or mappings of
            `class` and its parameters.
        ignore: Fields of the rows that are passed over; other unknown fields are faults.
        split: Name of the split, in place of `{split}` in the path, or of a data set that has it.
        headers: Names for what follows (document, question, answer) in the prompt.
        adjacent: Whether the rows of each document follow each other. Then a huge file is checked
            two to three times as fast and without a table on the disk; but ids that come twice are
            not noticed.
        columns: Names that the rows have for these fields: `{question: query, references:
            answers.text}`; what is not named is then not read. Rows without `id` are called by
            their numbers.
        collections: Paths, patterns and URLs by name, for rows with `collection`; a config's
            `collections`, if not given.
        max_row_bytes: Bytes of a row at most, expanded; one that is larger fails alone.
        loader: What reads the documents' files that it is for; others are read by what they are.
        answer: Type of the answers, as `date` or `{type: number, minimum: 0}`, for rows that say
            none of their own (docs/typed-answers.md).
        no_answer: What references say where the document does not say so.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")

    path: Path
    instruction: str = ""
    metrics: tuple[MetricEntry, ...] = field(default=("f1",), hash=False)
    ignore: tuple[str, ...] = ()
    split: str = ""
    headers: tuple[str, ...] = ()
    adjacent: bool = False
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    collections: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    max_row_bytes: Positive = ROW_BYTES
    loader: Loader | None = field(default=None, hash=False)
    answer: Mapping[str, Any] | str | None = field(default=None, hash=False)
    no_answer: str = ""

    def __post_init__(self) -> None:
        check_metrics(self.metrics)
        check_columns(self.columns)
        schema_of(self._answer)

    @property
    def _answer(self) -> JSON:
        return dict(self.answer) if isinstance(self.answer, Mapping) else self.answer

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of the split, in the order of their rows.

        Raises:
            UserError: There are none; or a split without a place in the path, or the other way
                round.
        """
        return find_files(self.path, self.split, self.suffixes)

    def check(self) -> None:
        """Reads all rows once, and no document's file.

        Raises:
            ConfigError: All faults of rows, with their lines.
            UserError: The file cannot be read, or has no rows.
        """
        self._layout()

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:  # noqa: ARG002 -- part of `Sharded`
        """Yields the examples on documents of the layout; nothing else of the file is read.

        Where a document's file cannot be read, or evidence is not in it, the examples concerned
        have a `fault`, and all others are as if these were not there.

        Raises:
            UserError: The file cannot be read, or has changed.
        """
        files = self._source
        reader = RowReader(files)
        for document in documents:
            rows = self._rows(document, reader)
            opened, problem = self._opened(files, rows)
            for line, row, fault in rows:
                yield self._example(row, files.place(line), opened, fault or problem)

    def closed(self, document: DocumentRows, fault: str) -> Iterator[Example]:
        """Yields the examples on a document that is not to be opened, with this fault.

        Raises:
            UserError: The file cannot be read, or has changed.
        """
        files = self._source
        rows = self._rows(document, RowReader(files))
        source = _source(rows)
        key = source.key if source else ""
        closed = Document(key, "", _title(rows))
        for line, row, own in rows:
            yield self._example(row, files.place(line), closed, own or f"document_path: {fault}")

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the files and of the documents' files.

        Files that cannot be read are told in a warning; that they cannot enters the hash.
        """
        layout = self._layout()
        digest = hashlib.sha256(bytes.fromhex(layout.facts["sha256"]))
        places = map(_place_of, layout)
        paths = dict.fromkeys(str(row["path"]) for row in places if "path" in row)
        faults: list[UserError] = []
        for path in paths:
            digest.update(path.encode() + b"\0")
            try:
                digest.update(self._hash(path))
            except UserError as error:
                faults.append(error)
        if faults:
            problem = f"{len(faults)} of {len(paths)} documents' files cannot be read, so that the"
            more = ", …" if len(faults) > 1 else ""
            _warn(f"{self.path}: {problem} examples on them will fail: {faults[0]}{more}")
        return digest.hexdigest()

    @property
    def _source(self) -> RowFiles:
        return RowFiles(self.files, self.max_row_bytes, self.ignore, self.columns)

    def _layout(self) -> Layout:
        """Returns where the rows on each document stand: [line, offset, count] of each run."""
        return _cached_layout(self, self._source.stamp())

    def _hash(self, source: str) -> bytes:
        """Returns the hash of what a document is read from."""
        if paths := self._several(source):
            return collection_hash(paths)
        return file_hash(self._beside(source))

    def _several(self, source: str) -> Sequence[str | Path]:
        """Returns the paths of a document that is read from several; none of one that is not.

        Raises:
            UserError: There is no collection of that name.
        """
        name, paths = sources(source)
        if name and name not in self.collections:
            hint = did_you_mean(name, self.collections)
            raise UserError(f"there is no collection {name!r}{hint}")
        return self.collections[name] if name else [*map(self._beside, paths)]

    def _beside(self, document_path: str) -> Path:
        """Returns a document's file, which counts from the folder that all files of rows share."""
        if is_url(document_path):
            return self._elsewhere(document_path)
        files = self.files
        if isinstance(files[0], RemotePath):
            return files[0].parent / document_path
        folder = Path(os.path.commonpath([file.absolute().parent for file in files]))
        folder = files[0].parent if folder == files[0].absolute().parent else folder
        return folder / at_home(document_path)

    def _elsewhere(self, url: str) -> Path:
        """Returns what a row names by a URL; rows from elsewhere name no file of this machine."""
        path, file = to_path(url), self.files[0]
        if isinstance(file, RemotePath) and not isinstance(path, RemotePath):
            raise UserError(f"{url}: is a file on this machine, and it is named at {file}")
        return path

    def _rows(self, document: DocumentRows, reader: RowReader) -> list[_RowAt]:
        """Returns the rows on a document; those that repeat its text share it."""
        rows: list[_RowAt] = []
        text = None
        for first, offset, count in _place_of(document)["at"]:
            lines = [*reader.read(first, offset, count)]
            if len(lines) < count:
                raise self._changed()
            for line in lines:
                try:
                    row = reader.source.row(line)
                except RowError:
                    raise self._changed() from None
                text = row.document if text is None else text
                if row.document == text is not None:
                    row = row.model_copy(update={"document": text})
                large = _TOO_LARGE.format(self.max_row_bytes) if line.content is None else ""
                rows.append(_RowAt(line.number, row, large))
        return rows

    def _changed(self) -> UserError:
        return UserError(f"{self.path}: has changed while it was read; run again")

    def _opened(self, files: RowFiles, rows: Sequence[_RowAt]) -> tuple[Document, str]:
        """Returns the document that one of the rows gives; see `_document`."""
        if source := _source(rows):
            return self._document(files, source, _title(rows))
        key = rows[0].row.key
        return Document(key, ""), f"document {key!r} has no text in any row that could be read"

    def _document(self, files: RowFiles, source: Row, title: str) -> tuple[Document, str]:
        """Returns the document, or an empty one and why it could not be read."""
        text = source.document or ""
        packed = files.packed(text)
        if not source.source and not packed:
            return Document(source.key, text, title), ""
        path = None
        try:
            if packed:
                path, data = packed
                document = load_bytes(data, path, self.loader)
            elif several := self._several(source.source):
                document = load_collection(several, source.key, loader=self.loader)
            else:
                path = self._beside(source.source)
                document = load(path, source.key, self.loader)
        except UserError as error:
            problem = str(error)
        except Exception as error:  # a broken file at which a format's library trips
            problem = f"{path}: {type(error).__name__}: {error}"
        else:
            title = title or document.title
            return dataclasses.replace(document, id=source.key, title=title), ""
        return Document(source.key, "", title), f"document_path: {problem}"

    def _example(
        self, row: Row, place: tuple[Path, int], document: Document, fault: str
    ) -> Example:
        evidence: tuple[Span, ...] = ()
        if not fault:
            try:
                evidence = located(row.evidence, document)
            except RowError as error:
                fault = str(error)
        file, number = place
        return Example(
            id=row.id,
            document=document,
            question=row.question,
            instruction=self.instruction,
            headers=self.headers,
            choices=tuple(row.choices),
            references=tuple(row.references),
            evidence=evidence,
            group=row.group,
            metadata=row.metadata,
            schema=schema_of(row.answer) or schema_of(self._answer),
            fault=f"{file.name}:{number}: {fault}" if fault else "",
        )


@lru_cache(maxsize=8)
def _cached_layout(task: JsonLines, stamp: tuple[tuple[int, int, int], ...]) -> Layout:  # noqa: ARG001 -- files with other stamps are read again
    """Returns the places of all rows, checked; they are read once for all runs."""
    source = task._source
    sha256 = source.sha256()
    how: list[JSON] = [[*sorted(task.ignore)], task.adjacent, dict(task.columns)]
    key: JSON = ["JsonLines", sha256, *how, task.max_row_bytes]
    documents = Scan(source).documents(adjacent=task.adjacent)
    layout = cached_layout(key, documents, {"sha256": sha256})
    if not layout.examples:
        raise UserError(f"{task.path}: has no rows")
    return layout


def _place_of(document: DocumentRows) -> Mapping[str, Any]:
    """Returns where a document's rows stand, `at`, and the `path` of its file, if it has one."""
    return cast("Mapping[str, Any]", document.rows)


def _source(rows: Sequence[_RowAt]) -> Row | None:
    """Returns the first row that gives the document's text, or its file."""
    sources = (row for _, row, _ in rows if row.document is not None or row.source)
    return next(sources, None)


def _title(rows: Sequence[_RowAt]) -> str:
    return next((row.title for _, row, _ in rows if row.title), "")


@cache
def _warn(text: str) -> None:
    """Warns once a process: a run takes the fingerprint before and after."""
    _log.warning(text)
