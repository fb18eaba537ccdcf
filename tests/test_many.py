"""What a run keeps of millions of examples is small, and what it was."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.errors import UserError
from leporello.finished import Finished
from leporello.metrics.many import Many
from leporello.tasks.places import Place, Places

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
    many = Many()
    for row in rows:
        many.append(row)
    assert [*many] == rows
    assert [many[n] for n in range(-len(many), len(many))] == rows + rows
    assert many[1:-1] == rows[1:-1]
    assert [[type(v) for v in row.values()] for row in many] == [
        [type(v) for v in row.values()] for row in rows
    ]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30))))
def test_finished_examples_are_a_set_in_task_order(acts: list[tuple[bool, int]]) -> None:
    """What is added and forgotten leaves what it leaves in a dictionary."""
    finished, expected = Finished(), dict[int, int]()
    for step, (adds, number) in enumerate(acts):
        if adds:
            finished.add(number, step)
            expected[number] = step
        elif number in expected:
            finished.remove(number)
            del expected[number]
        else:
            with pytest.raises(KeyError):
                finished.remove(number)
    assert [*finished] == sorted(expected)
    assert len(finished) == len(expected)
    assert {number: finished.place(number) for number in finished} == expected
    assert all((number in finished) == (number in expected) for number in range(-2, 40))


def statistics() -> Many:
    """Returns those of 20,000 examples."""
    many = Many()
    for number in range(20_000):
        many.append({"f1": number / 3})
    return many


def finished() -> Finished:
    """Returns 20,000 finished examples."""
    found = Finished()
    for number in range(20_000):
        found.add(number, number * 1000)
    return found


@pytest.mark.parametrize("make", [statistics, finished])
def test_an_example_takes_a_few_bytes(make: Callable[[], object]) -> None:
    """As objects each of these would take a hundred and more."""
    tracemalloc.start()
    try:
        kept = make()
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept is not None
    assert now < 20 * 20_000


PLACES = """
import resource
from pathlib import Path
from leporello.tasks.places import Place, Places

def peak(count):
    places = Places(Path("rows.jsonl"))
    rows = range(count)
    places.add(Place(n + 1, n * 1000, f"question-{n}", f"d{n}", f"t-{n}", "", "") for n in rows)
    places.sort()
    assert sum(len(rows) for rows in places.documents()) == len(places) == count
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


def test_without_room_on_the_disk_the_user_is_told() -> None:
    """With what to do."""
    places = Places(Path("rows.jsonl"))
    places._table.execute("PRAGMA max_page_count = 10")
    rows = [Place(n + 1, n, f"question-{n}", "d", "t", "", "") for n in range(10_000)]
    with pytest.raises(UserError, match=r"rows\.jsonl: where its rows stand .* set TMPDIR to"):
        places.add(rows)
