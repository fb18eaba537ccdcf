"""JSON by key, on disk: however much it is, memory stays as it is."""

from __future__ import annotations

import json
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import gettempdir
from typing import Any

from leporello.core.errors import UserError
from leporello.core.records import JSON

# A table ends with the process: a journal and syncs would protect nothing.
UNPROTECTED = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"


class JsonTable:
    """Values by key, in the order in which they came.

    SQLite moves to a temporary file what is much, and the table ends with this object.
    """

    def __init__(self) -> None:
        """Keeps none yet."""
        self._size = 0
        self._table = sqlite3.connect("", check_same_thread=False)
        table = "CREATE TABLE rows (key TEXT PRIMARY KEY, value TEXT);"
        self._table.executescript(UNPROTECTED + table)
        weakref.finalize(self, self._table.close)

    def add(self, key: JSON, value: JSON) -> bool:
        """Keeps a value; returns whether its key was new: else the former one stays.

        Raises:
            UserError: There is no room for it on the disk.
        """
        row = json.dumps(key), json.dumps(value)  # in ASCII, so halves of characters come back
        with kept_on_disk("rows"):
            added = self._table.execute("INSERT OR IGNORE INTO rows VALUES (?, ?)", row).rowcount
        self._size += added
        return bool(added)

    def get(self, key: JSON) -> Any:  # noqa: ANN401 -- any JSON
        """Returns a key's value; None if there is none."""
        rows = self._table.execute("SELECT value FROM rows WHERE key = ?", (json.dumps(key),))
        return next((json.loads(value) for (value,) in rows), None)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields keys with their values, in the order in which they came."""
        rows = self._table.execute("SELECT key, value FROM rows ORDER BY rowid")
        return ((json.loads(key), json.loads(value)) for key, value in rows)

    def __len__(self) -> int:
        """Returns how many there are."""
        return self._size


@contextmanager
def kept_on_disk(what: str) -> Iterator[None]:
    """Turns what SQLite raises where there is no room for these things into a `UserError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise UserError(
            f"{what} cannot be kept in {gettempdir()}: {error}; make room, or set TMPDIR to a"
            " folder with more"
        ) from None
