"""What benchmarks that are made here share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from leporello.core.records import DocumentRows, Example
from leporello.core.yaml.tree import read_tree

_BYTES = 6  # of a token, about


class Generated:
    """Examples that depend on nothing but their numbers from 0, each on a document of its own."""

    length: int

    def example(self, number: int) -> Example:
        """Returns an example by its number."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Returns how many there are."""
        raise NotImplementedError

    def examples(self) -> Iterator[Example]:
        """Yields the examples, each made when it is asked for."""
        return map(self.example, range(len(self)))

    def layout(self) -> Iterator[DocumentRows]:
        """Yields a document an example; see `Sharded.layout`."""
        for number in range(len(self)):
            yield DocumentRows(1, _BYTES * self.length, number)

    def examples_of(self, documents: Sequence[DocumentRows], first: int) -> Iterator[Example]:
        """Yields the examples on these documents; see `Sharded.examples_of`."""
        return map(self.example, range(first, first + len(documents)))


@cache
def benchmark(name: str) -> dict[str, Any]:
    """Returns what a benchmark's YAML file beside this module says."""
    loaded: Any = read_tree(file_of(name)).plain()
    return cast("dict[str, Any]", loaded)


def file_of(name: str) -> Path:
    """Returns where that file lies."""
    return Path(__file__).with_name(f"{name}.yaml")
