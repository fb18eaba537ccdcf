"""Ends the work on a store at a chosen commit, as a kill would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from unittest.mock import patch

from leporello.engine.store import Store


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
