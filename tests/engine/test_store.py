"""Stores after a kill, damage, or use by another run or process."""

import random
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from toy_stages import All, Chain, Mates, TwoRounds, Words, questions

from leporello.config import Pipeline
from leporello.core.errors import ReadError, UserError
from leporello.core.records import Document, Example, Output, Read, Reply
from leporello.engine.database import DamagedStoreError, StoreKey, connected, counts_in, finished_in
from leporello.engine.shard_rows import Rows, rows_of
from leporello.engine.store import Store
from leporello.testing.text_contract import killed_after

DOCUMENT = Document("d", "It rained.")
READ = Read((DOCUMENT.chunk(0, 2), "note"), "Why?")
KEY = StoreKey(shard=3, first=20, examples=4, run="run")


def answered(path: Path | None, count: int = 9, **changes: Any) -> Rows:
    examples = questions(count)
    examples[2] = replace(examples[2], question="unreadable")
    return rows_of(path, examples, Pipeline(Words(), All(), Mates(), TwoRounds()), **changes)


def test_the_next_process_loads_stored_outputs(tmp_path: Path) -> None:
    """With their notes, for unfinished examples and for enrichers."""
    store = Store(tmp_path / "s.sqlite", KEY)
    replies: list[tuple[int, int, Read, Reply, str]] = [
        (21, 0, READ, Output("yes", 0.5), ""),
        (21, 1, READ, ReadError("broken", "trace"), "a note"),
    ]
    store.add_batch(replies)
    store.add_batch([(~0, 0, READ, Output("summary"), "")])
    store.set_sizes({"batch_tokens": 500})
    store.commit()
    store.close()
    reopened = Store(tmp_path / "s.sqlite", KEY)
    outputs = reopened.outputs(21)
    assert outputs == {
        0: ({"text": "yes", "score": 0.5}, ""),
        1: ({"error": "broken", "traceback": "trace"}, "a note"),
    }
    assert [row["text"] for row, _ in reopened.outputs(~0).values()] == ["summary"]
    assert reopened.sizes == {"batch_tokens": 500}
    reopened.forget(0)
    reopened.close()
    assert not Store(tmp_path / "s.sqlite", KEY).outputs(~0)


def test_an_example_is_found_by_its_id(tmp_path: Path) -> None:
    answered(tmp_path / "s.sqlite")
    [row] = finished_in(tmp_path / "s.sqlite", "e7")
    assert (row.number, row.id, row.failed) == (1, "e7", False)
    [row] = (row for row in finished_in(tmp_path / "s.sqlite") if row.failed)
    assert row.number == 2
    assert b"RuntimeError: cannot read this" in row.lines[0]
    assert "in read" in row.traceback
    assert not [*finished_in(tmp_path / "s.sqlite", "nobody")]


@pytest.mark.parametrize(
    "key",
    [
        replace(KEY, shard=4),
        replace(KEY, examples=5),
        replace(KEY, run="another"),
        replace(KEY, form=3),
    ],
)
def test_a_store_with_another_key_is_cleared(
    tmp_path: Path, key: StoreKey, caplog: pytest.LogCaptureFixture
) -> None:
    """With a warning, unless only a limit changed the number of examples."""
    Store(tmp_path / "s.sqlite", KEY).add_batch([(21, 0, READ, Output("yes"), "")])
    store = Store(tmp_path / "s.sqlite", key)
    assert not store.outputs(21)
    assert ("its shard runs again" in caplog.text) is (key.examples == KEY.examples)
    store.close()
    assert counts_in(tmp_path / "s.sqlite").key == key


@pytest.mark.parametrize("length", [0, 100, 5000, -1])
def test_a_truncated_store_is_cleared(tmp_path: Path, length: int) -> None:
    path = tmp_path / "s.sqlite"
    expected = answered(path)
    path.write_bytes(path.read_bytes()[:length])
    assert length == -1 or counts_in(path).examples == 0  # -1: the last page is not in use
    assert answered(path) == expected


@pytest.mark.integration
@pytest.mark.parametrize("commits", [5, 99])
def test_no_changed_byte_changes_a_row(tmp_path: Path, commits: int) -> None:
    """Either the row is not affected, or the shard runs again; finished or not."""
    path, chance = tmp_path / "s.sqlite", random.Random(0)
    expected = answered(None)
    with killed_after(commits):
        answered(path)
    intact = path.read_bytes()
    for _ in range(150):
        changed = bytearray(intact)
        for _ in range(chance.choice((1, 1, 8))):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        path.write_bytes(changed)
        counts_in(path)
        assert answered(path) == expected


def _names(before: bytes, after: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes().replace(before, after))


def _rows(statement: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        with sqlite3.connect(path) as database:
            database.execute(statement)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _names(b"failed INTEGER", b"fail\xffd INTEGER"),  # not UTF-8
        _names(b"sha256 TEXT", b"sha255 TEXT"),  # only a later write uses the table
        _rows("DELETE FROM meta WHERE name = 'alone'"),  # else retried examples would share batches
        _rows("UPDATE done SET failed = 1 - failed WHERE number = 3"),
    ],
)
def test_a_store_with_changed_tables_or_rows_is_cleared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: Callable[[Path], object]
) -> None:
    path = tmp_path / "s.sqlite"
    expected = answered(path)
    change(path)
    counts_in(path)
    assert answered(path) == expected
    assert "damaged; its shard runs again" in caplog.text


def test_passages_are_those_of_the_text(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite", KEY)
    store.add_passages(0, "hash", {"rows": 1})
    assert store.passages(0, "hash") == {"rows": 1}
    assert store.passages(0, "another") is None
    assert store.passages(1, "hash") is None


def test_a_changed_row_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    answered(path)
    _rows("UPDATE done SET failed = 1 - failed WHERE number = 3")(path)
    with pytest.raises(DamagedStoreError, match="example 3"):
        list(finished_in(path))
    assert counts_in(path).examples == 0


def limited(pragma: str) -> Callable[[Path], sqlite3.Connection]:
    def connect(path: Path) -> sqlite3.Connection:
        database = connected(path)
        database.execute(f"PRAGMA {pragma}")
        return database

    return connect


def test_a_store_in_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sqlite"
    answered(path)
    monkeypatch.setattr("leporello.engine.database._PATIENCE", 0.01)
    database = sqlite3.connect(path)
    database.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UserError, match=r"s\.sqlite: another process uses it; wait"):
        answered(path)


@pytest.mark.parametrize("pages", [3, 8, 9])
def test_a_full_disk_stops_the_run_and_keeps_finished_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    path, expected = tmp_path / "s.sqlite", answered(None, 80)
    with monkeypatch.context() as patch:
        patch.setattr("leporello.engine.store.connected", limited(f"max_page_count = {pages}"))
        message = "cannot be written to: database or disk is full; finished examples are kept"
        with pytest.raises(UserError, match=message):
            answered(path, 80)
    assert answered(path, 80) == expected


def test_a_read_only_store_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.sqlite"
    with killed_after(5):
        answered(path)
    before = path.read_bytes()
    monkeypatch.setattr("leporello.engine.store.connected", limited("query_only = 1"))
    with pytest.raises(UserError, match=r"s\.sqlite: cannot be written to: .* allow writing"):
        answered(path)
    assert path.read_bytes() == before


def test_other_processes_see_each_finished_example(tmp_path: Path) -> None:
    """As soon as its combiner has returned, before the shard is finished."""
    path, counts = tmp_path / "s.sqlite", list[int]()

    @dataclass(frozen=True)
    class Looking(Mates):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            counts.append(counts_in(path).examples)
            return super().read(inputs)

    examples = [Example(f"e{n}", Document(f"d{n}", "w " * (n + 1)), "w") for n in range(5)]
    rows_of(path, examples, Pipeline(Words(), All(), Looking(), Chain()))
    assert counts == [0, 1, 2, 3, 4]


def test_a_retry_reads_failed_examples_in_separate_batches(tmp_path: Path) -> None:
    """Other examples do not change, and neither do rows after a kill."""
    path = tmp_path / "s.sqlite"
    first = answered(path)

    def retried(commits: int, name: str) -> Rows:
        copy = tmp_path / name
        copy.write_bytes(path.read_bytes())
        store = Store(copy, StoreKey(examples=9))
        store.retry()
        store.close()
        with killed_after(commits):
            rows_of(copy, questions(9), Pipeline(Words(), All(), Mates(), TwoRounds()))
        return rows_of(copy, questions(9), Pipeline(Words(), All(), Mates(), TwoRounds()))

    rows = retried(99, "unbroken.sqlite")
    assert [row["done"] for row in rows if "failure" in row] == []
    assert rows[:2] + rows[3:] == first[:2] + first[3:]
    assert len(rows[2]["calls"]) == int(rows[2]["calls"][0]["output"]["text"].split("/")[-1]) + 1
    for commits in range(4):
        assert retried(commits, f"killed {commits}.sqlite") == rows


def test_a_store_may_be_closed_twice(tmp_path: Path) -> None:
    """A worker does so if it fails after a shard is finished."""
    path = tmp_path / "s.sqlite"
    store = Store(path, KEY)
    store.add_batch([(21, 0, READ, Output("yes"), "")])
    store.close()
    store.close()
    assert len(Store(path, KEY).outputs(21)) == 1
