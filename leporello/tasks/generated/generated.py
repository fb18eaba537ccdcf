"""Base class of generated benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from leporello.core.records import DocumentRows, Example
from leporello.core.yaml.tree import read_tree

_BYTES = 6  # approximate bytes per token


class Generated:
    """Examples that depend only on their numbers from 0; each has its own document."""

    length: int

    def example(self, number: int) -> Example:
        """Returns an example by its number."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Returns the number of examples."""
        raise NotImplementedError

    def examples(self) -> Iterator[Example]:
        """Yields the examples, which are generated one by one."""
        return map(self.example, range(len(self)))

    def layout(self) -> Iterator[DocumentRows]:
        """Yields one document per example; see `Sharded.layout`."""
        for number in range(len(self)):
            yield DocumentRows(1, _BYTES * self.length, number)

    def examples_of(self, documents: Sequence[DocumentRows], first: int) -> Iterator[Example]:
        """Yields the examples on these documents; see `Sharded.examples_of`."""
        return map(self.example, range(first, first + len(documents)))


@cache
def benchmark(name: str) -> dict[str, Any]:
    """Returns the content of a benchmark's YAML file."""
    loaded: Any = read_tree(file_of(name)).plain()
    return cast("dict[str, Any]", loaded)


def file_of(name: str) -> Path:
    """Returns the path of a benchmark's YAML file."""
    return Path(__file__).with_name(f"{name}.yaml")
