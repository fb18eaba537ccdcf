"""Stores of one pipeline on one shard: a SQLite file, or memory for commands without a run.

A batch is stored before any combiner receives its outputs, so a resumed shard replays them. A store
that is damaged, or that belongs to another run, shard or version, is cleared, and its shard runs
again.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

from leporello.core.errors import UserError
from leporello.core.records import JSON, Read, Reply
from leporello.engine.database import (
    DONE,
    TABLES,
    DamagedStoreError,
    StoreKey,
    as_user_errors,
    checked,
    connected,
    done_rows,
    encoded,
    stored_row,
)
from leporello.engine.results.finished import FinishedRow
from leporello.engine.results.serialization import output_row

# A killed process loses no committed rows. A power cut can damage the file, which the checksums
# detect; synchronous writes would take four times as long (decision 49).
_WRITER = "PRAGMA journal_mode = PERSIST; PRAGMA synchronous = OFF;"
_ADD = f"INSERT OR REPLACE INTO done ({DONE}) VALUES (?, ?, ?, ?, ?)"  # noqa: S608 -- no user input
_log = logging.getLogger("leporello")

# A stored output in the form of `output_row`, and its note on the example.
StoredOutput: TypeAlias = tuple[Mapping[str, Any], str]


# The same methods as `Store`, so that one engine serves commands that keep nothing. These once
# wrote a journal to a temporary folder to read it back (decision 49).
class MemoryStore:
    """Stores examples in memory, for commands that write no results."""

    def __init__(self) -> None:
        self.done: set[int] = set()  # numbers of the finished examples
        self.failed: set[int] = set()
        # Numbers of the examples that failed before, and are read in separate batches.
        self.alone: set[int] = set()
        self.sizes: Mapping[str, int] = {}  # of micro-batches that readers determined, by name
        self._finished: dict[int, FinishedRow] = {}  # empty for a store on disk

    def outputs(self, owner: int) -> dict[int, StoredOutput]:  # noqa: ARG002 -- see Store
        """Removes and returns an owner's stored outputs by index of the read.

        The owner is an unfinished example, or `~number` for the enricher of a document.
        """
        return {}

    def add_batch(self, replies: Sequence[tuple[int, int, Read, Reply, str]]) -> None:
        """Stores (owner, index, read, reply, note on the example) for each read of a batch."""

    def finish(self, row: FinishedRow) -> None:
        """Stores a finished example."""
        self._finished[row.number] = row
        self._mark(row)

    def passages(self, document: int, sha256: str) -> Mapping[str, Any] | None:  # noqa: ARG002 -- see Store
        """Returns the stored passages of a document of the shard; None without passages."""
        return None

    def add_passages(self, document: int, sha256: str, row: Mapping[str, JSON]) -> None:
        """Stores the passages that an enricher returned for a document."""

    def forget(self, document: int) -> None:
        """Removes the outputs that the enricher of a document received."""

    def set_sizes(self, sizes: Mapping[str, int]) -> None:
        """Stores the sizes of micro-batches, if they changed."""
        self.sizes = dict(sizes)

    def commit(self) -> None:
        """Commits everything that was stored so far, so it survives a kill."""

    def rows(self) -> list[FinishedRow]:
        """Returns the rows of all finished examples, by number."""
        return [row for _, row in sorted(self._finished.items())]

    def close(self) -> None:
        """Closes the store."""

    def _mark(self, row: FinishedRow) -> None:
        self.done.add(row.number)
        if row.failed:
            self.failed.add(row.number)


class Store(MemoryStore):
    """SQLite file, which one process at a time writes; raises UserError if it cannot be written."""

    def __init__(self, path: Path, key: StoreKey) -> None:
        """Opens or creates a store; raises UserError if another process uses the file."""
        super().__init__()
        self.path, self.key = path, key
        self._outputs: dict[int, dict[int, StoredOutput]] = {}
        self._rows: list[tuple[object, ...]] = []  # of finished examples, until the next commit
        self._is_writable = True
        with as_user_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = connected(path)
            try:
                self._load_or_create()
            except BaseException:
                self._database.close()  # otherwise the file would stay locked
                raise

    def _load_or_create(self) -> None:
        fault = "damaged"
        with suppress(DamagedStoreError), as_user_errors(self.path):
            self._database.executescript(_WRITER)
            if not self._tables():
                self._create()
                return
            key = StoreKey(*self._meta("key"))
            if key == self.key:
                self._load()
                return
            fault = "of another run, shard or version of Leporello"
            # No warning: this is on purpose, and the cache of outputs makes the repetition cheap.
            if replace(key, examples=self.key.examples) == self.key:  # `--limit` has changed
                fault = ""
        if fault:
            _log.warning("%s: %s; its shard runs again", self.path, fault)
        # Deletes the files, not the rows: SQL fails on a damaged file. An example cannot be
        # replaced without its batch mates, so the shard runs again; the cache keeps this cheap.
        self._database.close()
        MemoryStore.__init__(self)
        self._outputs.clear()
        with as_user_errors(self.path):
            for suffix in ("", "-journal"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
            self._database = connected(self.path)
            self._create()

    def _create(self) -> None:
        self._database.executescript(f"{_WRITER} BEGIN; {TABLES}")
        for name, value in (("key", [*astuple(self.key)]), ("alone", []), ("sizes", {})):
            self._set_meta(name, value)
        self.commit()

    def _load(self) -> None:
        """Loads the rows of an earlier process; raises DamagedStoreError if one is wrong."""
        # Check all pages now: damage that only a later write meets would fail every repeated run.
        check = self._database.execute("PRAGMA integrity_check(1)").fetchone()
        if check != (b"ok",) or self._tables() != TABLES.encode():
            raise DamagedStoreError(f"{self.path}: a page is damaged")
        # Every checksum now, as a changed row would enter the results (decision 48).
        for row in done_rows(self._database):
            self._mark(row)
        self.alone = {*self._meta("alone")}
        self.sizes = self._meta("sizes")
        for data, crc in self._database.execute("SELECT data, crc FROM batch ORDER BY number"):
            for number, place, row, note in checked(data, crc):
                self._outputs.setdefault(number, {})[place] = row, note

    def outputs(self, owner: int) -> dict[int, StoredOutput]:
        """See `MemoryStore`."""
        return self._outputs.pop(owner, {})

    def add_batch(self, replies: Sequence[tuple[int, int, Read, Reply, str]]) -> None:
        """See `MemoryStore`; commits."""
        # Only an enricher's batch has a single owner, by which `forget` deletes it. A reader's
        # batch serves many examples, so its rows stay until the shard is finished.
        owner = replies[0][0] if replies[0][0] < 0 else None
        data = encoded(
            [
                (number, place, output_row(read, reply), note)
                for number, place, read, reply, note in replies
            ]
        )
        row = (owner, data, crc32(data))
        self._write("INSERT INTO batch (owner, data, crc) VALUES (?, ?, ?)", row)
        self.commit()

    def finish(self, row: FinishedRow) -> None:
        """See `MemoryStore`; `commit` must follow."""
        self._rows.append(stored_row(row))
        self._mark(row)

    def retry(self) -> None:
        """Removes failed examples, which are then read in separate batches."""
        # Stored, so that a retry that is killed forms the same batches again (decision 12).
        self._set_meta("alone", sorted(self.alone | self.failed))
        self._write("DELETE FROM done WHERE failed")
        self.commit()
        self.alone |= self.failed
        self.done -= self.failed
        self.failed.clear()

    def passages(self, document: int, sha256: str) -> Mapping[str, Any] | None:
        """See `MemoryStore`."""
        # Damage here costs one run of the enricher: the examples of the shard stay valid.
        query = "SELECT data, crc FROM passages WHERE document = ? AND sha256 = ?"
        with suppress(DamagedStoreError), as_user_errors(self.path):
            for data, crc in self._database.execute(query, (document, sha256)):
                row: Mapping[str, Any] = checked(data, crc)
                return row
        return None

    def add_passages(self, document: int, sha256: str, row: Mapping[str, JSON]) -> None:
        """See `MemoryStore`; commits."""
        data = encoded(row)
        values = (document, sha256, data, crc32(data))
        self._write("INSERT OR REPLACE INTO passages VALUES (?, ?, ?, ?)", values)
        self.commit()

    def forget(self, document: int) -> None:
        """See `MemoryStore`."""
        self._outputs.pop(~document, None)
        self._write("DELETE FROM batch WHERE owner = ?", (~document,))
        self.commit()

    def set_sizes(self, sizes: Mapping[str, int]) -> None:
        """Stores the sizes of micro-batches, if they changed."""
        if sizes != self.sizes:
            self._set_meta("sizes", {**sizes})
            super().set_sizes(sizes)

    def commit(self) -> None:
        """See `MemoryStore`."""
        if self._rows or self._database.in_transaction:
            with self._writing():
                self._database.executemany(_ADD, self._rows)
                self._database.commit()
            self._rows.clear()

    def rows(self) -> list[FinishedRow]:
        """See `MemoryStore`."""
        return [*done_rows(self._database)]

    def close(self) -> None:
        """Closes the file; deletes outputs of a finished shard, as its examples contain them."""
        if not self._is_writable:
            self._database.close()
            return
        with closing(self._database):
            # The outputs of ten reads take 2.2 kB; finished examples have them too (decision 49).
            if len(self.done) == self.key.examples:
                self._write("DELETE FROM batch")
            self.commit()
            with as_user_errors(self.path):
                # Removes the persistent journal file, so that a finished store is one file.
                self._database.execute("PRAGMA journal_mode = DELETE")
        self._is_writable = False
        # Commits are not synchronous, so one sync here protects a finished shard from a power cut.
        with suppress(OSError):
            _sync(self.path)

    def _tables(self) -> bytes:
        query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
        return b";\n".join(sql for (sql,) in self._database.execute(query))

    def _meta(self, name: str) -> Any:  # noqa: ANN401 -- JSON
        query = "SELECT data, crc FROM meta WHERE name = ?"
        return checked(*self._database.execute(query, (name,)).fetchone() or (None, 0))

    def _set_meta(self, name: str, value: object) -> None:
        data = encoded(value)
        self._write("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, data, crc32(data)))

    def _write(self, statement: str, values: Sequence[object] = ()) -> None:
        with self._writing():
            self._database.execute(statement, values)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with as_user_errors(self.path):
                yield
        except UserError:
            # SQLite may have rolled back rows that count as stored here, so writing stops.
            self._is_writable = False
            raise


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
