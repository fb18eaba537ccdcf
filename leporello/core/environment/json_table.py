"""Key-value table of JSON on disk, so that large tables do not fill memory."""

import json
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import gettempdir
from typing import Any

from leporello.core.errors import UserError
from leporello.core.records import JSON

# A table is deleted with its process, so a journal and syncs would protect nothing.
UNPROTECTED = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"


class JsonTable:
    """JSON values by key, in insertion order; SQLite keeps a large table in a temporary file."""

    def __init__(self) -> None:
        self._size = 0
        # The empty name is a private temporary table, which stays in memory while it is small.
        self._table = sqlite3.connect("", check_same_thread=False)
        table = "CREATE TABLE rows (key TEXT PRIMARY KEY, value TEXT);"
        self._table.executescript(UNPROTECTED + table)
        weakref.finalize(self, self._table.close)

    def add(self, key: JSON, value: JSON) -> bool:
        """Stores a value unless its key exists; returns whether it was stored."""
        row = json.dumps(key), json.dumps(value)  # in ASCII, which preserves unpaired surrogates
        with disk_errors("rows"):
            added = self._table.execute("INSERT OR IGNORE INTO rows VALUES (?, ?)", row).rowcount
        self._size += added
        return bool(added)

    def get(self, key: JSON) -> Any:  # noqa: ANN401 -- any JSON
        """Returns the value of a key, or None."""
        rows = self._table.execute("SELECT value FROM rows WHERE key = ?", (json.dumps(key),))
        return next((json.loads(value) for (value,) in rows), None)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Yields keys with their values, in insertion order."""
        rows = self._table.execute("SELECT key, value FROM rows ORDER BY rowid")
        return ((json.loads(key), json.loads(value)) for key, value in rows)

    def __len__(self) -> int:
        return self._size


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Converts an SQLite error, such as a full disk, to a `UserError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise UserError(
            f"{what} cannot be stored in {gettempdir()}: {error}; free space, or set TMPDIR to a"
            " folder with more space"
        ) from None
