"""Where the rows of a file stand, and on which documents; on disk, however many there are."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from leporello.core.environment.json_table import UNPROTECTED, kept_on_disk
from leporello.tasks.jsonl.schema import Row

_TABLE = """
CREATE TABLE rows (
    line INTEGER PRIMARY KEY, offset INTEGER, size INTEGER,
    id TEXT, document TEXT, content TEXT, path TEXT, title TEXT
);
CREATE TABLE documents (first INTEGER PRIMARY KEY, id TEXT);
"""
_INDEXES = """
CREATE INDEX by_id ON rows (id);
CREATE INDEX by_document ON rows (document, line);
INSERT INTO documents SELECT min(line), document FROM rows GROUP BY document;
"""


class Offset(NamedTuple):
    """A row, without its texts.

    Attributes:
        line: Line of the row, from 1.
        offset: Offset in bytes.
        size: Size in bytes.
        id: Id of the example.
        document: Id of its document.
        content: Text or path that the row gives as the document, as `Row.content`.
        path: Path of the document's file, as the row names it; empty if it does not.
        title: Title of the document; empty if the row gives none.
    """

    line: int
    offset: int
    size: int
    id: str
    document: str
    content: str
    path: str
    title: str

    @classmethod
    def of(cls, row: Row, line: int, offset: int = 0, size: int = 0) -> Offset:
        """Returns the place of a row."""
        return cls(line, offset, size, row.id, row.key, row.content, row.source, row.title)


class OffsetTable:
    """A table of rows that ends with this object; SQLite moves to a temporary file what is much."""

    def __init__(self, path: Path) -> None:
        """Opens an empty one.

        Args:
            path: Path of the file that the rows stand in, for messages.
        """
        self._what = f"{path}: where its rows stand"
        with kept_on_disk(self._what):
            # SQLite locks its own calls, so that what reads examples may change its thread.
            self._table = sqlite3.connect("", check_same_thread=False)
            self._table.executescript(UNPROTECTED + _TABLE)
        weakref.finalize(self, self._table.close)

    def add(self, places: Iterable[Offset]) -> None:
        """Takes rows, in the file's order.

        Raises:
            UserError: There is no room for them on the disk.
        """
        with kept_on_disk(self._what):
            self._table.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", places)

    def sort(self) -> None:
        """Makes what follows quick, once all rows are there.

        Raises:
            UserError: As `add`.
        """
        with kept_on_disk(self._what):
            self._table.executescript(_INDEXES)

    def repeats(self) -> Iterator[tuple[int, str, int]]:
        """Yields line, id and the id's first line of each row whose id stands above already."""
        yield from self._table.execute(
            "SELECT line, rows.id, first FROM rows JOIN"
            " (SELECT id, min(line) AS first FROM rows GROUP BY id HAVING count(*) > 1) AS twice"
            " ON rows.id = twice.id WHERE line > first"
        )

    def documents(self) -> Iterator[list[Offset]]:
        """Yields the rows on each document, in the file's order, documents as they first appear."""
        # CROSS JOIN: so SQLite keeps the loops in this order, and sorts nothing.
        rows = self._table.execute(
            "SELECT rows.* FROM documents CROSS JOIN rows ON rows.document = documents.id"
            " ORDER BY documents.first, line"
        )
        for _, together in groupby(map(Offset._make, rows), key=lambda offset: offset.document):
            yield [*together]
