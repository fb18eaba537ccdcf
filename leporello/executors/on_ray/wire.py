"""What passes between the driver and its actors: documents never come to the driver.

Reads are sent as bytes in which the document is left out; who unpacks them has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leporello.crew import Move, Recorded
from leporello.errors import UserError
from leporello.executors.sending import CANNOT_BE_SENT, dump, opened
from leporello.flight import ReadError
from leporello.reading import Tally
from leporello.records import Example, Output, Read

__all__ = [
    "Begun",
    "Block",
    "Crowded",
    "Errand",
    "Extent",
    "Far",
    "Packed",
    "Said",
    "Sent",
    "Sheaf",
    "Supply",
    "unwrapped",
    "wrapped",
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


# Of a supply, what has anything left to do: sheaves, each as bytes of its own.
Block = Sequence[bytes]


def wrapped(sheaf: Sheaf) -> bytes:
    """Returns a sheaf as bytes; examples that cannot be sent have a fault instead.

    Raises:
        UserError: An example cannot be sent whatever is left out.
    """
    try:
        return dump(sheaf)
    except CANNOT_BE_SENT:
        return dump(Sheaf(sheaf.first, (*map(_sendable, sheaf.examples),)))


def _sendable(example: Example) -> Example:
    """Returns the example, or what is left of one that cannot be sent."""
    told = ""
    for attempt in (example, replace(example, metadata={})):
        try:
            dump(attempt)
        except CANNOT_BE_SENT as error:
            told = f"the example cannot be sent to another process ({error})"
        else:
            return replace(attempt, fault=told) if told else attempt
    raise UserError(f"example {example.id!r}: {told}")


def unwrapped(block: Block, place: int) -> Sheaf:
    """Returns a sheaf of a block.

    Raises:
        UserError: What the task put into its examples cannot be opened in another process.
    """
    try:
        sheaf: Sheaf = opened(block[place])
    except Exception as error:
        raise UserError(
            "an example cannot be opened in another process; what a task puts into it has to be"
            f" picklable ({type(error).__name__}: {error})"
        ) from error
    return sheaf


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
    """Some reads of one round of an example.

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
    """A read elsewhere: the one at this place among some."""

    among: Packed
    place: int


@dataclass(frozen=True, slots=True)
class Sent:
    """A move, as it comes from an actor.

    Attributes:
        move: Without its reads.
        parts: Its reads, some at a time: how many, and as `pack` leaves them.
    """

    move: Move[Read]
    parts: Sequence[tuple[int, bytes]] = ()

    def received(self, block: int, document: int) -> Move[Far]:
        """Returns the move as the driver knows it."""
        parts = [(count, Packed(block, document, reads)) for count, reads in self.parts]
        move = self.move
        return Move(
            move.number,
            [Far(packed, place) for count, packed in parts for place in range(count)],
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
class Crowded:
    """Those that read for the lead find no room in the cluster; it is to be asked again."""


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
