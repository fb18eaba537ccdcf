"""What passes between the driver and its actors: documents never come to the driver.

Reads are sent as bytes in which the document is left out; who unpacks them has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leporello.crew import Move, Recorded
from leporello.flight import ReadError
from leporello.reading import Tally
from leporello.records import Example, Output, Read

__all__ = [
    "Begun",
    "Block",
    "Errand",
    "Extent",
    "Far",
    "Packed",
    "Said",
    "Sent",
    "Sheaf",
    "Supply",
]


@dataclass(frozen=True, slots=True)
class Extent:
    """What the driver knows of a document.

    Attributes:
        first: Number of the first example on it, in task order.
        count: Of the examples on it.
        characters: Of its text.
        place: Where its examples stand in the block; None where they are not sent.
    """

    first: int
    count: int
    characters: int
    place: int | None

    @property
    def numbers(self) -> range:
        """Of the examples."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True, slots=True)
class Supply:
    """Documents that follow each other in the task.

    Attributes:
        extents: One a document; none at the end of the task.
    """

    extents: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class Sheaf:
    """All examples on one document.

    Attributes:
        first: Number of the first, in task order.
        examples: In task order.
    """

    first: int
    examples: tuple[Example, ...]

    @property
    def numbers(self) -> range:
        """Of the examples."""
        return range(self.first, self.first + len(self.examples))


# Of a supply, what has anything left to do.
Block = Sequence[Sheaf]


@dataclass(frozen=True, slots=True)
class Errand:
    """What one pipeline is to do with one document.

    Attributes:
        document: Its place in the block.
        pipeline: Its place among the jobs.
        selected: Numbers of the examples that are asked for together.
        launched: Those of them that are started, with what the journal holds of each.
        fault: Why nothing is selected; the examples fail with it.
    """

    document: int
    pipeline: int
    selected: tuple[int, ...]
    launched: Mapping[int, Recorded]
    fault: str = ""

    def alone(self) -> Iterator[Errand]:
        """Yields an errand for each example that is started."""
        for number, recorded in self.launched.items():
            yield Errand(self.document, self.pipeline, (number,), {number: recorded}, self.fault)


@dataclass(frozen=True, slots=True)
class Packed:
    """The reads of one round of an example.

    Attributes:
        block: Number of the block that has its document.
        document: Its place there.
        reads: As `pack` leaves them.
    """

    block: int
    document: int
    reads: bytes


@dataclass(frozen=True, slots=True)
class Far:
    """A read elsewhere: the one at this place of a round."""

    round: Packed
    place: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A move, as it comes from an actor.

    Attributes:
        move: Without its reads.
        count: Of its reads.
        reads: All of them, packed.
    """

    move: Move[Read]
    count: int
    reads: bytes

    def received(self, block: int, document: int) -> Move[Far]:
        """Returns the move as the driver knows it."""
        packed = Packed(block, document, self.reads)
        move = self.move
        return Move(
            move.number,
            [Far(packed, place) for place in range(self.count)],
            move.replies,
            move.step,
            move.line,
            move.failed,
        )


@dataclass(frozen=True, slots=True)
class Begun:
    """What came of an errand.

    Attributes:
        moves: One for each example that was started.
        seconds: That dividing and selecting took.
    """

    moves: tuple[Sent, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Said:
    """What came of reading a window.

    Attributes:
        replies: One a read.
        tally: What reading it came to.
        sizes: That the reader found itself.
    """

    replies: tuple[Output | ReadError, ...]
    tally: Tally
    sizes: Mapping[str, int]
