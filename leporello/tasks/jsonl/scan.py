"""Checks all rows of files in one pass, and finds the rows of each document."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from leporello.core.environment.json_table import UNPROTECTED, disk_errors
from leporello.core.errors import ConfigError, Fault
from leporello.core.records import JSON, DocumentRows
from leporello.tasks.jsonl.row_files import RowFiles
from leporello.tasks.jsonl.schema import RowError

_MOST_FAULTS = 500  # the scan stops after more
_TABLE = """
CREATE TABLE rows (
    line INTEGER PRIMARY KEY, offset INTEGER, size INTEGER,
    id TEXT, document TEXT, content TEXT, source TEXT
);
CREATE TABLE documents (first INTEGER PRIMARY KEY, id TEXT);
"""
_INDEXES = """
CREATE INDEX by_id ON rows (id);
CREATE INDEX by_document ON rows (document, line);
INSERT INTO documents SELECT min(line), document FROM rows GROUP BY document;
"""
_REPEATS = """
SELECT line, rows.id, first FROM rows
JOIN (SELECT id, min(line) AS first FROM rows GROUP BY id HAVING count(*) > 1) AS twice
ON rows.id = twice.id WHERE line > first
"""
# With CROSS JOIN, SQLite keeps the order of the loops, and sorts nothing.
_GROUPED = """
SELECT rows.* FROM documents CROSS JOIN rows ON rows.document = documents.id
ORDER BY documents.first, line
"""


class RowPlace(NamedTuple):
    """A row without its texts: its position from `Line`, and the document's fields from `Row`."""

    line: int
    offset: int
    size: int
    id: str
    document: str
    content: str
    source: str


def grouped(
    table: sqlite3.Connection, path: Path, places: Iterable[RowPlace]
) -> Iterator[RowPlace]:
    """Stores rows in a table, and returns them grouped by document, otherwise in their order."""
    with disk_errors(f"{path}: the table of its rows"):
        table.executescript(UNPROTECTED + _TABLE)
        table.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)", places)
        table.executescript(_INDEXES)
    return map(RowPlace._make, table.execute(_GROUPED))


class Scan:
    """One pass over all rows, which checks them."""

    def __init__(self, files: RowFiles) -> None:
        self._files = files
        self._faults: list[Fault] = []
        self._reads_all = True  # False after an unreadable row, which may contain any document

    def documents(self) -> Iterator[DocumentRows]:
        """Yields the documents in the order of their first rows.

        Faults of rows are raised after the last document, as one ConfigError.
        """
        # SQLite locks its own calls, so that examples may be read in another thread.
        with closing(sqlite3.connect("", check_same_thread=False)) as table:
            rows = grouped(table, self._files.files[0], self._rows())
            for line, row_id, first in table.execute(_REPEATS):
                self._fault(line, f"id {row_id!r} is a duplicate of line {self._files.name(first)}")
            for _, together in groupby(rows, key=lambda row: row.document):
                yield self._document([*together])
        if self._faults:
            raise ConfigError(self._faults)

    def _fault(self, line: int, text: str) -> None:
        self._faults.append(Fault(*self._files.place(line), text))

    def _rows(self) -> Iterator[RowPlace]:
        for line in self._files.rows():
            try:
                row = self._files.row(line)
            except RowError as error:
                self._reads_all = False
                for text in error.faults:
                    self._fault(line.number, text)
                # A file in the wrong format has a fault in every row.
                if len(self._faults) > _MOST_FAULTS:
                    return
            else:
                self._reads_all = self._reads_all and line.content is not None
                texts = (row.id, row.key, row.content, row.source)
                yield RowPlace(line.number, line.offset, line.size, *texts)

    def _document(self, rows: Sequence[RowPlace]) -> DocumentRows:
        """Returns the rows on a document, as [line, offset, count] of each run of adjacent rows."""
        name = f"document {rows[0].document!r}"
        source = next((row for row in rows if row.content), None)
        if source is None and self._reads_all:
            text = "has no text: none of its rows gives `document` or `document_path`"
            self._fault(rows[0].line, f"{name} {text}")
        runs: list[Any] = []
        for row in rows:
            if source and row.content not in ("", source.content):
                earlier = f"line {self._files.name(source.line)} has another"
                self._fault(row.line, f"{name} has a second text; {earlier}")
            if runs and row.line == runs[-1][0] + runs[-1][2]:
                runs[-1][2] += 1
            else:
                runs.append([row.line, row.offset, 1])
        more: dict[str, JSON] = {"source": source.source} if source and source.source else {}
        return DocumentRows(len(rows), sum(row.size for row in rows), {"at": runs, **more})
