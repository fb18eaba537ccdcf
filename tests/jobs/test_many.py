"""Memory of tables for millions of examples."""

import sqlite3
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.core.errors import UserError
from leporello.metrics.statistics import StatisticsTable
from leporello.tasks.jsonl.scan import RowPlace, grouped

ROWS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"f1": st.floats(0, 100), "mrr": st.floats(0, 100)}),
        st.fixed_dictionaries({"f1": st.floats(0, 100)}),
        st.fixed_dictionaries({"f1": st.integers(0, 100), "mrr": st.none()}),
        st.just({}),
    )
)


@given(ROWS)
def test_a_table_restores_statistics(rows: list[dict[str, object]]) -> None:
    """Items of any kind come in order."""
    table = StatisticsTable()
    for row in rows:
        table.append(row)
    assert [*table] == rows
    assert [table[n] for n in range(-len(table), len(table))] == rows + rows
    assert [[type(v) for v in row.values()] for row in table] == [
        [type(v) for v in row.values()] for row in rows
    ]


def statistics(*, counts: bool) -> StatisticsTable:
    table = StatisticsTable()
    for number in range(20_000):
        table.append({"counts": [number, number + 1]} if counts else {"f1": number / 3})
    return table


@pytest.mark.parametrize("counts", [False, True])
def test_an_example_takes_a_few_bytes(*, counts: bool) -> None:
    """A Python object would take more than a hundred bytes."""
    tracemalloc.start()
    try:
        table = statistics(counts=counts)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(table) == 20_000
    assert size < 20 * 20_000


PLACES = r"""
import re, sqlite3
from pathlib import Path
from leporello.tasks.jsonl.scan import RowPlace, grouped

def peak(count):
    ids = range(count)
    rows = (RowPlace(n + 1, n, 9, f"question-{n}", f"d{n}", f"t-{n}", "") for n in ids)
    places = grouped(sqlite3.connect(""), Path("rows.jsonl"), rows)
    assert sum(1 for _ in places) == count
    # `ru_maxrss` would start at the size of the tests' process.
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 1024

few = peak(2_000)
print(peak(60_000) - few)
"""


def test_offsets_of_rows_are_on_disk() -> None:
    """60,000 rows take a few MiB; as objects they would take some 20."""
    process = subprocess.run(
        [sys.executable, "-c", PLACES], capture_output=True, text=True, check=True
    )
    assert float(process.stdout) < 10


def test_a_full_disk_is_reported_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leporello.tasks.jsonl.scan.UNPROTECTED", "PRAGMA max_page_count = 10;")
    rows = [RowPlace(n + 1, n, 1, f"question-{n}", "d", "t", "") for n in range(10_000)]
    with pytest.raises(UserError, match=r"rows\.jsonl: the table of its rows .* set TMPDIR to"):
        grouped(sqlite3.connect(""), Path("rows.jsonl"), rows)
