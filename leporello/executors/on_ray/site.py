"""Ray as a site: the driver orders windows and keeps the journal; all other work is in actors."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from leporello.crew import Launch, Move, Recorded, Round
from leporello.executors.on_ray.calls import Calls
from leporello.executors.on_ray.cluster import connected
from leporello.executors.on_ray.errands import Crewman, Piece, Staff
from leporello.executors.on_ray.ingest import Done, ranges
from leporello.executors.on_ray.reading import FarPool, Reader
from leporello.executors.on_ray.stream import Stream
from leporello.executors.on_ray.wire import Begun, Block, Errand, Extent, Far, Sent, Supply
from leporello.executors.site import Arrival, Assignment
from leporello.reading import inputs_at_once
from leporello.rows import output_row

if TYPE_CHECKING:
    from ray import ObjectRef

__all__ = ["OnRay"]

_DOCUMENTS_AHEAD = 32  # about what fills a window where each document has one question
_CHARACTERS_AHEAD = 8_000_000
_DOCUMENTS_PER_WORKER = 64
_CHARACTERS_PER_WORKER = 1_000_000

# An example of a pipeline: the pipeline's place, the example's number.
Key: TypeAlias = "tuple[int, int]"


@dataclass(eq=False)
class _Lot:
    """A supply of documents under way.

    Attributes:
        number: In task order.
        supply: What the driver knows of it.
        block: Its examples, wherever they are.
        missing: Examples that have not been started.
        unfinished: Examples that the block is needed for.
        seconds: That dividing and selecting took, by (document's place, pipeline).
    """

    number: int
    supply: Supply
    block: ObjectRef[Block]
    missing: set[Key] = field(default_factory=set)
    unfinished: int = 0
    seconds: dict[tuple[int, int], float] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        return sum(extent.place is not None for extent in self.supply.extents)

    @property
    def characters(self) -> int:
        return sum(e.characters for e in self.supply.extents if e.place is not None)


@dataclass(eq=False)
class _Aloft:
    """An example that waits for replies.

    Attributes:
        lot: That has its document.
        document: Its place there.
        asked: Numbers of the examples that were asked for together with it.
        holder: Who holds its combiner.
        history: The replies of all complete rounds: from them another worker takes it up.
    """

    lot: _Lot
    document: int
    asked: tuple[int, ...]
    holder: Crewman
    history: Recorded


class OnRay:
    """Runs an assignment on Ray.

    Documents are handed from the actor that reads them to those that divide, select and combine,
    and to the one that reads for the model; the driver has but their extents.
    """

    def __init__(self, assignment: Assignment) -> None:
        """Starts nothing yet."""
        self._assignment = assignment
        self._calls = Calls(self._while_waiting)
        self._blocks: dict[int, ObjectRef[Block]] = {}
        self._lots: deque[_Lot] = deque()
        self._moves: dict[Key, Move[Far]] = {}
        self._aloft: dict[Key, _Aloft] = {}
        self._count = self._documents = self._characters = 0  # of lots; of what they hold
        self._open = ExitStack()

    def __enter__(self) -> OnRay:
        """Connects to Ray, and has it start the actors.

        Raises:
            UserError: There is no such cluster, or no Ray can be started.
        """
        with ExitStack() as opening:
            self._actors = actors = opening.enter_context(connected(self._assignment))
            timeout = self._assignment.means.limits.example_timeout
            self._staff = Staff(self._calls, actors.worker, actors.workers, timeout, self._give_up)
            sizes = self._assignment.sizes
            self._reader = Reader(self._calls, actors.lead, self._blocks, sizes)
            self._stream = Stream(
                self._calls, actors.ingest, self._done, self._has_room, self._take_in
            )
            for member in (self._reader, self._staff, self._stream):
                opening.callback(member.end)
            if actors.share.replicas > 1:  # they find room before workers have taken it
                self._calls.until(lambda: self._reader.ready)
            self._staff.fill()
            self._open = opening.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def pool(self, place: int) -> FarPool:
        """Returns the reader of a pipeline."""
        return FarPool(self._reader, place, inputs_at_once(self._assignment.stages[place].reader))

    def crew(self, place: int) -> _FarCrew:
        """Returns who holds the combiners in flight of a pipeline."""
        return _FarCrew(self, place)

    def arrivals(self) -> Iterator[Arrival[Far]]:
        """Yields all documents in task order, some of them prepared ahead.

        Raises:
            UserError: A mistake of the user's.
            Stopped: The run is to end.
        """
        self._stream.begin()
        while True:
            self._calls.until(self._has_next)
            if not self._lots:
                return
            lot = self._lots.popleft()
            self._documents -= lot.documents
            self._characters -= lot.characters
            self._stream.ask()
            for extent in lot.supply.extents:
                yield self._arrival(lot, extent)

    def _has_next(self) -> bool:
        """Says whether the first documents are ready, or there are none any more."""
        return not self._lots[0].missing if self._lots else self._stream.ended

    def _arrival(self, lot: _Lot, extent: Extent) -> Arrival[Far]:
        seconds = {
            pipeline: s for (place, pipeline), s in lot.seconds.items() if place == extent.place
        }
        launches = {pipeline: self._launch(pipeline) for pipeline in seconds}
        return Arrival(extent.numbers, extent.characters, launches, seconds)

    def _launch(self, pipeline: int) -> Launch[Far]:
        return lambda number: self._moves.pop((pipeline, number))

    def _while_waiting(self) -> None:
        if not self._reader.reading:  # what is being read is to be finished
            self._assignment.means.check(self._assignment.progress)
        if self._reader.finds_no_room():
            self._staff.make_room()
        elif self._reader.ready and not self._reader.crowded:
            self._staff.fill()
        self._staff.deal()

    # -- the data ------------------------------------------------------------------------------

    def _done(self) -> list[Done]:
        journals = [self._assignment.journals[place] for place in self._assignment.places]
        return [ranges(journal.done) for journal in journals]

    def _has_room(self) -> bool:
        """Says whether more documents may be under way."""
        workers = self._actors.workers
        documents = max(_DOCUMENTS_AHEAD, self._actors.at_once) + _DOCUMENTS_PER_WORKER * workers
        characters = _CHARACTERS_AHEAD + _CHARACTERS_PER_WORKER * workers
        return (
            len(self._lots) < documents  # those of a resumed run may hold nothing
            and self._documents < documents
            and self._characters < characters
        )

    def _take_in(self, supply: Supply, block: ObjectRef[Block]) -> None:
        """Has documents worked on."""
        lot = _Lot(self._count, supply, block)
        self._count += 1
        self._lots.append(lot)
        self._documents += lot.documents
        self._characters += lot.characters
        errands = [errand for extent in supply.extents for errand in self._errands(extent)]
        if errands:
            lot.missing = {(e.pipeline, number) for e in errands for number in e.launched}
            lot.unfinished = len(lot.missing)
            self._blocks[lot.number] = block
            self._staff.hand_out([Piece(block, errands, partial(self._begun, lot))])

    def _errands(self, extent: Extent) -> Iterator[Errand]:
        left = self._assignment.left(extent.numbers)
        done = extent.count * len(left) - sum(left.values())
        self._assignment.progress.already_done(done)
        for pipeline in [pipeline for pipeline in left if left[pipeline]]:
            assert extent.place is not None, "the actor was told what is done"
            journal = self._assignment.journals[pipeline]
            launched = {n: journal.recorded(n) for n in extent.numbers if n not in journal.done}
            yield Errand(extent.place, pipeline, (*extent.numbers,), launched)

    # -- the combiners -------------------------------------------------------------------------

    def _begun(self, lot: _Lot, holder: Crewman, piece: Piece, answers: Sequence[Begun]) -> None:
        for errand, begun in zip(piece.errands, answers, strict=True):
            paid = errand.document, errand.pipeline
            lot.seconds[paid] = lot.seconds.get(paid, 0.0) + begun.seconds
            for sent in begun.moves:
                recorded = errand.launched[sent.move.number]
                complete = recorded[: len(recorded) - len(sent.move.replies)]
                aloft = _Aloft(lot, errand.document, errand.selected, holder, complete)
                self._moved((errand.pipeline, sent.move.number), aloft, sent)

    def _give_up(self, holder: Crewman, piece: Piece) -> None:
        """Has an example fail where its document is opened already."""
        [errand] = piece.errands
        [number] = errand.launched

        def given_up(sent: Sent) -> None:
            piece.then(holder, piece, [Begun((sent,), 0.0)])

        self._stream.give_up(errand.pipeline, number, errand.fault, given_up)

    def _moved(self, key: Key, aloft: _Aloft, sent: Sent) -> None:
        self._moves[key] = sent.received(aloft.lot.number, aloft.document)
        self._aloft[key] = aloft
        aloft.lot.missing.discard(key)
        if sent.move.line:
            del self._aloft[key]
            aloft.lot.unfinished -= 1
            if not aloft.lot.unfinished:
                del self._blocks[aloft.lot.number]

    def deliver(self, pipeline: int, rounds: Sequence[Round]) -> Iterator[Move[Far]]:
        """Hands replies over to whoever holds their combiners; see `Moves`."""
        keys = [(pipeline, number) for number, _ in rounds]
        together: dict[Crewman, list[Round]] = {}
        for key, (number, replies) in zip(keys, rounds, strict=True):
            aloft = self._aloft[key]
            aloft.history = [*aloft.history, *((0, output_row(reply)) for reply in replies)]
            together.setdefault(aloft.holder, []).append((number, replies))
        for holder, theirs in together.items():
            numbers = [number for number, _ in theirs]
            lost = partial(self._take_up, pipeline, numbers)
            self._staff.deliver(holder, pipeline, theirs, partial(self._delivered, pipeline), lost)
        self._calls.until(lambda: all(key in self._moves for key in keys))
        yield from (self._moves.pop(key) for key in keys)

    def _delivered(self, pipeline: int, answers: Sequence[Sent]) -> None:
        for sent in answers:
            key = (pipeline, sent.move.number)
            self._moved(key, self._aloft[key], sent)

    def _take_up(self, pipeline: int, numbers: Sequence[int]) -> None:
        """Has examples of a worker that is gone started anew, as far as they had come.

        They are asked for together with those that they were asked for with.
        """
        together: dict[tuple[_Lot, int, tuple[int, ...]], dict[int, Recorded]] = {}
        for number in numbers:
            aloft = self._aloft[pipeline, number]
            asked = together.setdefault((aloft.lot, aloft.document, aloft.asked), {})
            asked[number] = aloft.history
        pieces = [
            Piece(
                lot.block, [Errand(document, pipeline, asked, launched)], partial(self._begun, lot)
            )
            for (lot, document, asked), launched in together.items()
        ]
        self._staff.hand_out(pieces, first=True)


@dataclass(frozen=True)
class _FarCrew:
    """Holds the combiners in flight of one pipeline."""

    site: OnRay
    pipeline: int

    def deliver(self, rounds: Sequence[Round]) -> Iterator[Move[Far]]:
        """Yields the next move of each example, in their order; see `Moves`."""
        return self.site.deliver(self.pipeline, rounds)
