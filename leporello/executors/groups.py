"""What is handed to an executor, and what comes back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from leporello.config import Built
from leporello.flight import ExampleError
from leporello.records import Example
from leporello.selection import Found, select_apart

__all__ = ["Executor", "Group", "Selection", "by_document", "select_group"]


@dataclass(frozen=True, slots=True)
class Group:
    """All examples on one document.

    Attributes:
        first: Number of the first, in task order.
        examples: In task order.
        wanted: Which pipelines, by their place, have any of them left to do.
    """

    first: int
    examples: tuple[Example, ...]
    wanted: tuple[int, ...]

    @property
    def numbers(self) -> range:
        """Of the examples."""
        return range(self.first, self.first + len(self.examples))


@dataclass(frozen=True, slots=True)
class Selection:
    """What one pipeline selects from one document.

    Attributes:
        found: One an example of the group.
        seconds: That dividing and selecting took; what pipelines share, the first of them pays.
    """

    found: tuple[Found | ExampleError, ...]
    seconds: float


class Executor(Protocol):
    """Divides and selects for several pipelines at once."""

    def select(self, groups: Iterable[Group]) -> Iterator[tuple[Group, dict[int, Selection]]]:
        """Yields the groups in their order, each with a selection for every wanted pipeline.

        Raises:
            UserError: A stage met a mistake of the user's.
        """
        ...


def by_document(examples: Iterable[Example]) -> Iterator[tuple[int, tuple[Example, ...]]]:
    """Yields the examples on each document, behind the number of the first of them."""
    first = 0
    for _, together in groupby(examples, key=lambda example: id(example.document)):
        group = tuple(together)
        yield first, group
        first += len(group)


def select_group(stages: Built, examples: Sequence[Example], timeout: float | None) -> Selection:
    """Divides and selects for one pipeline; examples whose data is at fault are left out."""
    started = time.monotonic()
    sound = [example for example in examples if not example.fault]
    found = iter(select_apart(stages, sound, timeout) if sound else ())
    each = tuple(ExampleError("task", e.fault) if e.fault else next(found) for e in examples)
    return Selection(each, time.monotonic() - started)
