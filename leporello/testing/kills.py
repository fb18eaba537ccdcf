"""Ends the work on a store at a chosen commit, as a kill would."""

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
    """Stands for a kill: no stage may catch it."""


@contextmanager
def killed_after(commits: int) -> Iterator[list[bool]]:
    """Ends the block when a store is to commit for the next time after so many commits.

    Yields:
        A list that holds True once the block was ended.
    """
    commit, counted, killed = Store.commit, 0, list[bool]()

    def counting(store: Store) -> None:
        nonlocal counted
        if counted == commits:
            killed[:] = [True]
            raise KilledError
        if store._database.in_transaction:
            counted += 1
        commit(store)

    with suppress(KilledError), patch.object(Store, "commit", counting):
        yield killed


def resumed(
    run: Callable[[Path], _Result], folder: Path, commits: Iterable[int] | None = None
) -> Iterator[_Result]:
    """Yields the result of a run that was killed and then resumed, for each place to kill it.

    Args:
        run: Function that runs with its store at a path.
        folder: Folder for the stores.
        commits: Numbers of commits after which it is killed; all there are by default.
    """
    for number in count() if commits is None else commits:
        path = folder / f"killed after {number}.sqlite"
        with killed_after(number) as killed:
            run(path)
        if not killed:
            return
        yield run(path)
