"""Where an assignment is carried out: what is to be done, and what an engine needs of the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from leporello.config import Built
from leporello.crew import Launch, Moves
from leporello.engine import Reads
from leporello.jobs import Job
from leporello.journal import Journal
from leporello.means import Means
from leporello.progress import Progress

__all__ = ["Arrival", "Assignment", "Site"]

R = TypeVar("R")


@dataclass(frozen=True)
class Assignment:
    """Pipelines to run side by side: on one task, with one reader.

    Attributes:
        jobs: One a pipeline; elsewhere a pipeline is named by its place here.
        stages: Of each, built in this process.
        journals: Of each.
        sizes: That the reader found itself in an earlier process.
        places: Of those that have anything left to do.
        means: What the run works with.
        progress: Told of what is done already.
    """

    jobs: Sequence[Job]
    stages: Sequence[Built]
    journals: Sequence[Journal]
    sizes: Mapping[str, int]
    places: Sequence[int]
    means: Means
    progress: Progress

    def left(self, numbers: range) -> dict[int, int]:
        """Returns how many of these examples each pipeline has left to do, by its place."""
        return {p: sum(n not in self.journals[p].done for n in numbers) for p in self.places}


@dataclass(frozen=True, slots=True)
class Arrival(Generic[R]):
    """All examples on one document, divided and selected for.

    Attributes:
        numbers: Of the examples, in task order.
        characters: Of the document.
        launches: What starts each example, by the pipelines' places; a pipeline with nothing left
            to do is not there.
        seconds: That dividing and selecting took, likewise.
    """

    numbers: range
    characters: int
    launches: Mapping[int, Launch[R]]
    seconds: Mapping[int, float]


class Site(Protocol[R]):
    """A place where pipelines run."""

    def pool(self, place: int) -> Reads[R]:
        """Returns the reader of a pipeline."""
        ...

    def crew(self, place: int) -> Moves[R]:
        """Returns who holds the combiners in flight of a pipeline."""
        ...

    def arrivals(self) -> Iterator[Arrival[R]]:
        """Yields all documents in task order, some of them prepared ahead.

        Raises:
            UserError: A mistake of the user's.
            Stopped: The run is to end.
        """
        ...
