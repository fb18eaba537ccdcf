"""The one reader of an engine: reads windows of what many examples ask for."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leporello.calls import read as call_reader
from leporello.derived import content_of
from leporello.errors import UserError
from leporello.flight import ReadError
from leporello.identity import identity
from leporello.nested import load_models
from leporello.records import JSON, Output, Read
from leporello.rows import output_from_row, output_row, rounded
from leporello.stages import Batching, PacksBatches, Replicates
from leporello.time_limit import time_limit

if TYPE_CHECKING:
    from leporello.cache import Shelf
    from leporello.executors.hands import Hands

__all__ = [
    "Packed",
    "Pool",
    "Tally",
    "batching_of",
    "digest_of",
    "inputs_at_once",
    "replicate",
    "settle",
]


_COUNTED = ("seconds", "reads", "kept", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Packed:
    """What came of a reader's micro-batches.

    Attributes:
        batches: Read.
        prompt_tokens: In them; equal prompts stand there once.
        padded_tokens: The same with padding, as if each prompt were as long as its batch's longest.
        halvings: How often the memory did not suffice, and they were made smaller.
    """

    batches: int = 0
    prompt_tokens: int = 0
    padded_tokens: int = 0
    halvings: int = 0

    @property
    def padding(self) -> float:
        """The share of padding."""
        return 1 - self.prompt_tokens / self.padded_tokens if self.padded_tokens else 0.0

    def since(self, before: Packed) -> Packed:
        """Returns what has been added."""
        added = {n: getattr(self, n) - getattr(before, n) for n in self.__slots__}
        return Packed(**added)

    def plus(self, more: Packed) -> Packed:
        """Returns both together."""
        return Packed(**{n: getattr(self, n) + getattr(more, n) for n in self.__slots__})


@dataclass
class Tally:
    """What reading came to.

    Attributes:
        seconds: Spent in the reader, its model loaded.
        reads: Read by it; those whose outputs were kept are not counted.
        kept: Reads whose outputs were kept from an earlier run.
        input_tokens: Of what was read.
        output_tokens: Likewise.
        packed: What came of its micro-batches, if it packs any.
    """

    seconds: float = 0.0
    reads: int = 0
    kept: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    packed: Packed = Packed()

    def add(self, more: Tally) -> None:
        """Adds what more reading came to."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.packed = self.packed.plus(more.packed)

    def row(self) -> dict[str, JSON]:
        """Returns all of it, and rates, for timings.json."""
        told = {name: getattr(self, name) for name in _COUNTED}
        for name in ("input_tokens", "output_tokens"):
            told[f"{name}_per_second"] = round(told[name] / self.seconds, 1) if self.seconds else 0
        if self.packed.batches:
            packed = self.packed
            told |= {"batches": packed.batches, "padding": round(packed.padding, 4)}
            told["halvings"] = packed.halvings
        return told


@dataclass
class Pool:
    """A reader for windows: a faulty read fails alone, and what is on the shelf is not read.

    Attributes:
        reader: The stage.
        shelf: Where outputs are kept, by whole windows; None keeps nothing.
        timeout: Seconds that a call may take for each read in it; None is no limit.
        tally: What reading came to.
    """

    reader: Any
    shelf: Shelf | None = None
    timeout: float | None = None
    tally: Tally = field(default_factory=Tally)
    _halved: bool = False  # what was read in halves is not what the window says
    _loaded: bool = False

    @property
    def at_once(self) -> int:
        """Inputs that the reader's class wants in one window, 0 if it does not say."""
        return inputs_at_once(self.reader)

    @property
    def sizes(self) -> Mapping[str, int]:
        """That the reader found itself; it does so now, for which it may load its model."""
        batching = batching_of(self.reader)
        return dict(batching.sizes()) if batching else {}

    def read(self, window: Sequence[Read]) -> list[Output | ReadError]:
        """Returns one output a read, or why it failed.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
        """
        recipe = self._recipe(window)
        if recipe and self.shelf and (found := self.shelf.get("outputs", recipe)):
            self.tally.kept += len(window)
            rows: Any = found["outputs"]
            return [output_from_row(row) for row in rows]
        if not self._loaded:  # which takes its time, and must not be interrupted
            load_models(self.reader)
            self._loaded = True
        started, before, self._halved = time.monotonic(), self._packed(), False
        outputs = self._read(window)
        packed = self._packed().since(before)
        self._count(outputs, time.monotonic() - started, packed)
        if recipe and self.shelf and not self._halved and not packed.halvings:
            self.shelf.put("outputs", recipe, {"outputs": list(map(output_row, outputs))})
        return outputs

    def _recipe(self, window: Sequence[Read]) -> Mapping[str, JSON] | None:
        known = identity(self.reader) if self.shelf else None
        if not known:
            return None
        sizes = self.sizes
        reader: dict[str, JSON] = {**known, **({"sizes": {**sizes}} if sizes else {})}
        return {"reader": reader, "reads": list(map(digest_of, window))}

    def _packed(self) -> Packed:
        """Returns what came of all of the reader's micro-batches so far."""
        batching = batching_of(self.reader)
        return Packed(**batching.counts()) if batching else Packed()

    def _read(self, reads: Sequence[Read]) -> list[Output | ReadError]:
        """Reads a window; one that fails is halved until the guilty read is alone."""
        limit = None if self.timeout is None else self.timeout * len(reads)
        try:
            with time_limit(limit):
                outputs = call_reader(self.reader, reads)
        except UserError:
            raise
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # a plug-in that leaves the process fails too
            self._halved = True
            if len(reads) == 1:
                return [ReadError.of(error)]
            half = len(reads) // 2
            return [*self._read(reads[:half]), *self._read(reads[half:])]
        return [_rounded(output) for output in outputs]

    def _count(self, outputs: Sequence[Output | ReadError], seconds: float, packed: Packed) -> None:
        said = [output for output in outputs if isinstance(output, Output)]
        self.tally.seconds += seconds
        self.tally.reads += len(outputs)
        self.tally.input_tokens += sum(output.input_tokens for output in said)
        self.tally.output_tokens += sum(output.output_tokens for output in said)
        self.tally.packed = self.tally.packed.plus(packed)


def inputs_at_once(reader: object) -> int:
    """Returns how many inputs a reader's class wants at once, 0 if it does not say."""
    return int(getattr(type(reader), "at_once", 0))


def batching_of(reader: object) -> Batching | None:
    """Returns how a reader packs micro-batches, None if it packs none."""
    return reader.batching if isinstance(reader, PacksBatches) else None


def settle(reader: object, sizes: Mapping[str, int]) -> None:
    """Has a reader use the sizes that an earlier process kept."""
    if batching := batching_of(reader):
        batching.settle(sizes)


def replicate(reader: object, count: int, hands: Hands[Any] | None = None) -> None:
    """Has a reader read in several processes.

    Args:
        reader: The stage.
        count: Of processes.
        hands: Where they come from; if None, they are beside this one.

    Raises:
        UserError: It cannot.
    """
    if not isinstance(reader, Replicates):
        name = type(reader).__name__
        raise UserError(f"the reader {name} reads in this process alone: leave out reader_replicas")
    reader.replicate(count, hands)


def digest_of(read: Read) -> str:
    """Returns a hash of everything that a reader can see of a read, its documents included."""
    passages: list[JSON] = [
        passage
        if isinstance(passage, str)
        else [content_of(passage.document), passage.start, passage.end]
        for passage in read.passages
    ]
    others = {n: getattr(read, n) for n in Read.__slots__ if n != "passages"}
    text = json.dumps([passages, others], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _rounded(output: Output) -> Output:
    """Rounds scores before anything compares them; what is not a number is no score."""
    score = output.score
    if score is not None and not math.isfinite(score):
        score = None
    return dataclasses.replace(
        output,
        score=None if score is None else rounded(score),
        scores=tuple(rounded(each) for each in output.scores),
    )
