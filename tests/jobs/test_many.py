"""What a run keeps of millions of examples is small, and what it was."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.core.errors import UserError
from leporello.metrics.statistics import StatisticsTable
from leporello.tasks.jsonl.scan import PlaceTable, RowPlace

ROWS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"f1": st.floats(0, 100), "mrr": st.floats(0, 100)}),
        st.fixed_dictionaries({"f1": st.floats(0, 100)}),
        st.fixed_dictionaries({"f1": st.integers(0, 100), "mrr": st.none()}),
        st.just({}),
    )
)


@given(ROWS)
def test_statistics_come_back_as_they_were(rows: list[dict[str, object]]) -> None:
    """Of whatever kinds they are, in order, one at a time and in slices."""
    many = StatisticsTable()
    for row in rows:
        many.append(row)
    assert [*many] == rows
    assert [many[n] for n in range(-len(many), len(many))] == rows + rows
    assert many[1:-1] == rows[1:-1]
    assert [[type(v) for v in row.values()] for row in many] == [
        [type(v) for v in row.values()] for row in rows
    ]


def statistics(*, counts: bool) -> StatisticsTable:
    """Returns those of 20,000 examples, a score or counts each."""
    many = StatisticsTable()
    for number in range(20_000):
        many.append({"counts": [number, number + 1]} if counts else {"f1": number / 3})
    return many


@pytest.mark.parametrize("counts", [False, True])
def test_an_example_takes_a_few_bytes(*, counts: bool) -> None:
    """As objects each of these would take a hundred and more."""
    tracemalloc.start()
    try:
        kept = statistics(counts=counts)
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == 20_000
    assert now < 20 * 20_000


PLACES = """
import resource
from pathlib import Path
from leporello.tasks.jsonl.scan import PlaceTable, RowPlace

def peak(count):
    ids = range(count)
    rows = (RowPlace(n + 1, n, 9, f"question-{n}", f"d{n}", f"t-{n}", "", "") for n in ids)
    places = PlaceTable(Path("rows.jsonl"), rows)
    assert sum(1 for _ in places.rows()) == count
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

few = peak(2_000)
print(peak(150_000) - few)
"""


def test_where_rows_stand_is_on_disk() -> None:
    """150,000 rows take a few MiB; as objects they would take some 50."""
    done = subprocess.run(
        [sys.executable, "-c", PLACES], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 20


def test_without_room_on_the_disk_the_user_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do."""
    monkeypatch.setattr("leporello.tasks.jsonl.scan.UNPROTECTED", "PRAGMA max_page_count = 10;")
    rows = [RowPlace(n + 1, n, 1, f"question-{n}", "d", "t", "", "") for n in range(10_000)]
    with pytest.raises(UserError, match=r"rows\.jsonl: the table of its rows .* set TMPDIR to"):
        PlaceTable(Path("rows.jsonl"), rows)
