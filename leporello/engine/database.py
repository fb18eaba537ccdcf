"""SQLite files of stores: tables, checksums, errors, and functions to read them."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from json import dumps, loads  # by name: a stage may replace functions of modules
from pathlib import Path
from typing import Any
from zlib import DEFLATED, compressobj, crc32, decompress

from leporello.core.errors import UserError
from leporello.engine.results.finished import FinishedRow

TABLES = """\
CREATE TABLE meta (name TEXT PRIMARY KEY, data BLOB, crc INTEGER) WITHOUT ROWID;
CREATE TABLE batch (number INTEGER PRIMARY KEY, owner INTEGER, data BLOB, crc INTEGER);
CREATE TABLE done (number INTEGER PRIMARY KEY, id BLOB, failed INTEGER, data BLOB, crc INTEGER);
CREATE INDEX done_id ON done (id);
CREATE TABLE passages (document INTEGER PRIMARY KEY, sha256 TEXT, data BLOB, crc INTEGER)"""
# Ids are bytes, because SQLite's text rejects an unpaired surrogate, which an id may contain.
DONE = "number, id, failed, data, crc"
FORM = 6  # version of the table layout
_BETWEEN = b"\0"  # between the lines of an example: JSON escapes it
# Level, method, window and memory of the compression: larger ones are slower and save little of
# these short texts.
_COMPRESSION = 1, DEFLATED, 12, 5
# Network file systems release locks late, and a viewer reads for seconds at most.
_PATIENCE = 60.0  # seconds to wait for another process that uses the file
# A damaged schema appears as a plain SQL error: a table or column does not exist.
_DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class DamagedStoreError(UserError):
    """A store is damaged, so its shard must be run again."""


@dataclass(frozen=True, slots=True)
class StoreKey:
    """Identity of a store: a shard of a run."""

    shard: int = 0
    first: int = 0  # number of its first example in the task
    examples: int = 0
    run: str = ""  # hash of all inputs that determine the results
    form: int = FORM  # version of the table layout


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """Numbers of examples in a store."""

    examples: int = 0  # number of finished examples, including failed ones
    failures: int = 0  # number of failed examples
    key: StoreKey = StoreKey()  # identity of the store


def counts_in(path: Path) -> StoreCounts:
    """Returns the numbers of examples in a store; zeros if it is missing or any row is damaged."""
    with suppress(DamagedStoreError), _reading(path) as database:
        if key := database.execute("SELECT data, crc FROM meta WHERE name = 'key'").fetchone():
            failed = [row.failed for row in done_rows(database)]
            return StoreCounts(len(failed), sum(failed), StoreKey(*checked(*key)))
    return StoreCounts()


def finished_in(path: Path, example_id: str | None = None) -> Iterator[FinishedRow]:
    """Yields the finished examples of a store by number; only one of them if an id is given."""
    with _reading(path) as database:
        if example_id is None:
            yield from done_rows(database)
        else:
            yield from done_rows(database, "id = ?", utf8(example_id))


def passages_in(path: Path, sha256: str) -> Mapping[str, Any] | None:
    """Returns the stored passages of a document by the hash of its text; None without passages."""
    with _reading(path) as database:
        query = "SELECT data, crc FROM passages WHERE sha256 = ?"
        row = database.execute(query, (sha256,)).fetchone()
        return checked(*row) if row else None


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    # SQLite would open a missing or empty file as a valid database without rows, and hide the loss.
    if not path.is_file() or not path.stat().st_size:
        raise DamagedStoreError(f"{path}: the store does not exist")
    with as_user_errors(path), closing(connected(path)) as database:
        yield database


def connected(path: Path) -> sqlite3.Connection:
    """Opens a file; waits up to a minute while other processes use it."""
    # `watch` and `explain` read a store while a worker writes it, so both wait for the lock. SQLite
    # locks the file per transaction, not for the life of the worker (decision 49).
    database = sqlite3.connect(path, timeout=_PATIENCE, check_same_thread=False)
    database.text_factory = bytes  # damage can change the type of a column to text
    return database


@contextmanager
def as_user_errors(path: Path) -> Iterator[None]:
    """Turns errors of SQLite and of the file system into DamagedStoreError or UserError."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
        if code in _DAMAGED or isinstance(error, UnicodeDecodeError):  # in a message of SQLite
            raise DamagedStoreError(
                f"{path}: is damaged; run the same command again (if the run was finished, delete"
                " the .merged.json of the job first)"
            ) from error
        if code in _IN_USE:
            raise UserError(f"{path}: another process uses it; wait until it has ended") from error
        raise UserError(
            f"{path}: cannot be written to: {getattr(error, 'strerror', None) or error}; finished"
            " examples are kept: free space or allow writing, and run the same command to resume"
        ) from error


def done_rows(
    database: sqlite3.Connection, condition: str = "1", *values: object
) -> Iterator[FinishedRow]:
    """Yields examples, by number, that meet a condition in SQL; raises DamagedStoreError."""
    query = f"SELECT {DONE} FROM done WHERE {condition} ORDER BY number"  # noqa: S608 -- no user input
    for number, example_id, failed, data, crc in database.execute(query, values):
        if not isinstance(example_id, bytes) or not isinstance(data, bytes):
            raise DamagedStoreError(f"example {number} is damaged")
        if crc != _crc_of(number, failed, example_id, data):
            raise DamagedStoreError(f"a checksum of example {number} is wrong")
        lines = decompress(data).split(_BETWEEN, 3)  # a traceback may contain the separator
        yield FinishedRow(number, example_id.decode(errors="surrogatepass"), bool(failed), lines)


def stored_row(row: FinishedRow) -> tuple[object, ...]:
    """Returns the values of the columns `DONE` for a finished example."""
    example_id, data = utf8(row.id), _compressed(_BETWEEN.join(row.lines))
    crc = _crc_of(row.number, row.failed, example_id, data)
    return row.number, example_id, row.failed, data, crc


def _crc_of(number: int, failed: int, example_id: bytes, data: bytes) -> int:
    # Covers all columns: with a changed number, an answer would belong to another example. Before
    # checksums, 83 of 330 changed bytes gave other answers with status 0 (decision 48).
    return crc32(b"%d %d %b\n%b" % (number, failed, example_id, data))


def checked(data: bytes | None, crc: int) -> Any:  # noqa: ANN401 -- JSON
    """Returns the JSON of a row; raises DamagedStoreError if it is None or has another checksum."""
    if not isinstance(data, bytes) or crc32(data) != crc:
        raise DamagedStoreError("a checksum is wrong")
    return loads(decompress(data))


def encoded(value: object) -> bytes:
    """Returns a value as compressed JSON."""
    return _compressed(dumps(value, separators=(",", ":")).encode())


def _compressed(data: bytes) -> bytes:
    compressor = compressobj(*_COMPRESSION)
    return compressor.compress(data) + compressor.flush()


def utf8(text: str) -> bytes:
    """Returns a text as bytes; unpaired surrogates are kept."""
    return text.encode(errors="surrogatepass")
