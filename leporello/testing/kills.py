"""Stops runs at a chosen commit of their store, as a kill would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

from leporello.engine.store import Store

_Result = TypeVar("_Result")


class KilledError(BaseException):
    """Simulates a kill; not an Exception, so that no stage catches it."""


@contextmanager
def killed_after(commits: int) -> Iterator[list[bool]]:
    """Ends the block at the first commit after a number of commits.

    Yields:
        A list that contains True once the block has been ended.
    """
    commit, number, killed = Store.commit, 0, list[bool]()

    def count_or_kill(store: Store) -> None:
        nonlocal number
        if number == commits:
            killed[:] = [True]
            raise KilledError
        if store._database.in_transaction:
            number += 1
        commit(store)

    with suppress(KilledError), patch.object(Store, "commit", count_or_kill):
        yield killed


def resumed(
    run: Callable[[Path], _Result], folder: Path, commits: Iterable[int] | None = None
) -> Iterator[_Result]:
    """Yields the results of runs that were killed at different commits and then resumed.

    Args:
        run: Function that runs with a store at a path.
        folder: Folder for the stores.
        commits: Numbers of commits after which the run is killed; None for all.
    """
    for number in count() if commits is None else commits:
        path = folder / f"killed after {number}.sqlite"
        with killed_after(number) as killed:
            run(path)
        if not killed:
            return
        yield run(path)
