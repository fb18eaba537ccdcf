"""The journal: what a kill, damage or another run leaves of it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from leporello.core.records import Document, Output, Read
from leporello.engine.failures import ReadError
from leporello.engine.journal.checksums import believed
from leporello.engine.journal.journal import Journal
from leporello.engine.journal.rows import FinishedRow, RetryRow, ShardRow, SizesRow, encode
from leporello.engine.serialization import Reply, output_row, reads_to_columns, reply_of
from leporello.engine.shard_rows import finished_rows

DOCUMENT = Document("d", "It rained.")
READ = Read((DOCUMENT.chunk(0, 2), "note"), "Why?")
OF = ShardRow(shard=3, first=20, examples=4, run="run")


def finished(number: int, reads: int = 0) -> bytes:
    """Returns the line of an example that was answered."""
    asked = reads_to_columns([(0, READ)] * reads)
    return encode(FinishedRow(number, {"f1": 1.0}, prediction={"id": str(number)}, reads=asked))


def failed(number: int) -> bytes:
    """Returns the line of an example that was not."""
    return encode(FinishedRow(number, {}, failure={"id": str(number), "error": "E"}))


def written(path: Path) -> None:
    """Writes two steps, an answer, a failure; an example is left waiting for its third read."""
    journal = Journal(path)
    journal.begin(OF)
    replies: list[Reply] = [Output("yes", 0.5), ReadError("broken", "trace"), Output("no")]
    journal.step(3, [(0, 0, READ, replies[0]), (2, 0, READ, replies[1]), (2, 1, READ, replies[2])])
    journal.finish(0, finished(0, reads=1))
    journal.finish(1, failed(1), failed=True)
    journal.step(2, [(3, 0, READ, Output("late"))])
    journal.keep_sizes({"batch_tokens": 500})
    journal.close()


def rows_in(path: Path) -> list[bytes]:
    """Returns the rows that are believed, without their checksums."""
    with path.open("rb") as file:
        return [row for row, _ in believed(file)]


def state(journal: Journal) -> dict[Any, Any]:
    """Returns what a journal knows."""
    said = {number: [*journal.recorded(number)] for number in range(4)}
    values: dict[Any, Any] = {
        name: getattr(journal, name) for name in ("of", "done", "failed", "cursors", "sizes")
    }
    return values | {
        number: [(one.step, one.place, output_row(reply_of(one.output, READ))) for one in recorded]
        for number, recorded in said.items()
    }


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    """By another process: numbers, outputs, sizes; cursors never go back."""
    written(tmp_path / "j.jsonl")
    found = state(Journal(tmp_path / "j.jsonl"))
    assert (found["of"], found["done"], found["failed"]) == (OF, {0, 1}, {1})
    assert (found["cursors"], found["sizes"]) == ([3, 3], {"batch_tokens": 500})
    assert found[0] == found[1] == []  # they are finished
    assert [(step, place) for step, place, _ in found[2]] == [(0, 0), (0, 1)]
    assert found[2][0][2] == {"error": "broken", "traceback": "trace"}


def test_finished_examples_are_numbered_as_in_their_task(tmp_path: Path) -> None:
    """And hold what was said to them."""
    written(tmp_path / "j.jsonl")
    first, second = finished_rows(tmp_path / "j.jsonl")
    assert (first["done"], first["calls"][0]["output"]["text"]) == (0, "yes")
    assert first["calls"][0]["passages"] == [[0, 2], "note"]
    assert second["failure"]["error"] == "E"


def test_a_torn_line_is_cut_off_before_anything_is_written(tmp_path: Path) -> None:
    """Reading alone changes nothing; wherever it is torn, the lines before it stand."""
    path = tmp_path / "j.jsonl"
    written(path)
    whole = path.read_bytes()
    lines, sound = whole.splitlines(keepends=True), rows_in(path)
    for count, line in enumerate(lines):
        for length in {1, len(line) // 2, len(line) - 1}:
            torn = b"".join(lines[:count]) + line[:length]
            path.write_bytes(torn)
            journal = Journal(path)
            assert path.read_bytes() == torn
            journal.begin(OF)
            journal.finish(3, failed(3), failed=True)
            journal.close()
            assert rows_in(path) == [*(sound[:count] or [encode(OF)]), failed(3)]


@pytest.mark.integration
def test_nothing_behind_a_changed_byte_is_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whichever byte it is: the lines before it stand, those after it are told to be gone."""
    path = tmp_path / "j.jsonl"
    written(path)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for place in range(len(whole)):
        for byte in b"x\n":
            if byte == whole[place]:
                continue
            caplog.clear()
            path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            before = [*itertools.accumulate(map(len, lines))]
            sound = sum(end <= place for end in before)
            journal = Journal(path)
            journal.append(RetryRow([1]))
            journal.close()
            assert path.read_bytes().startswith(b"".join(lines[:sound]))
            assert len(path.read_bytes().splitlines()) == sound + 1
            torn = place == len(whole) - 1 and byte != ord("\n")
            assert torn or f"behind byte {len(b''.join(lines[:sound]))} changed" in caplog.text


def test_a_line_that_another_journal_had_there_is_not_believed(tmp_path: Path) -> None:
    """A sound line in a wrong place, swapped or left out, does not fit those before it."""
    path = tmp_path / "j.jsonl"
    written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    for changed in ([lines[0], lines[2], lines[1], *lines[3:]], [lines[0], *lines[2:]]):
        path.write_bytes(b"".join(changed))
        journal = Journal(path)
        assert (journal.of, journal.done, journal.cursors) == (OF, set(), [])


@pytest.mark.parametrize(
    "other",
    [ShardRow(4, 20, 4, "run"), ShardRow(3, 20, 5, "run"), ShardRow(3, 20, 4, "another")],
)
def test_a_journal_of_something_else_begins_anew(tmp_path: Path, other: ShardRow) -> None:
    """Of another shard, another cut or another run: nothing of it counts."""
    path = tmp_path / "j.jsonl"
    written(path)
    journal = Journal(path)
    journal.begin(other)
    assert (journal.done, journal.cursors, journal.sizes) == (set(), [], {})
    assert not journal.recorded(2)
    journal.finish(2, failed(2), failed=True)
    journal.close()
    assert rows_in(path) == [encode(other), failed(2)]
    again = Journal(path)
    again.begin(other)
    assert again.done == {2}


def test_failures_are_tried_again_in_another_pass(tmp_path: Path) -> None:
    """Steps are counted anew; what comes out then is what counts."""
    path = tmp_path / "j.jsonl"
    written(path)
    journal = Journal(path)
    journal.retry(journal.failed)
    assert (journal.done, journal.failed, journal.cursors) == ({0}, set(), [])
    journal.step(1, [(1, 0, READ, Output("now"))])
    journal.close()
    resumed = Journal(path)
    assert (resumed.done, resumed.cursors, resumed.sizes) == ({0}, [1], {"batch_tokens": 500})
    assert [one.output["text"] for one in resumed.recorded(1)] == ["now"]
    assert not resumed.recorded(2)
    resumed.finish(1, finished(1, reads=1))
    resumed.close()
    rows = finished_rows(path)
    assert [(row["done"], row["calls"][0]["output"]["text"]) for row in rows] == [
        (0, "yes"),
        (1, "now"),
    ]


def test_sizes_are_written_once_they_change(tmp_path: Path) -> None:
    """A reader that keeps its sizes leaves no row; those that a run began with are none either."""
    journal = Journal(tmp_path / "j.jsonl")
    journal.begin(OF)
    journal.sizes = {"batch_tokens": 9}
    for size in (9, 9, 4, 4, 2):
        journal.keep_sizes({"batch_tokens": size})
    journal.close()
    sizes = [SizesRow({"batch_tokens": size}) for size in (4, 2)]
    assert rows_in(journal.path)[1:] == [*map(encode, sizes)]
    assert Journal(journal.path).sizes == {"batch_tokens": 2}
