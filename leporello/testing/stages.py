"""The contracts of chunkers, enrichers, retrievers, readers and combiners."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from leporello.cache.store import Cache
from leporello.config import Pipeline
from leporello.core.calls.derived import search_only
from leporello.core.calls.stage_calls import divide, read, retrieve
from leporello.core.coverage import letters, merge
from leporello.core.notes import collect_notes
from leporello.core.passages import to_table
from leporello.core.records import Chunk, Document, Example, Output, Read
from leporello.engine.enriching import EnricherRunner
from leporello.engine.limits import Limits
from leporello.engine.selection import select
from leporello.engine.shard_rows import rows_of
from leporello.testing.contract import Maker, alike, fail, variants
from leporello.testing.text_contract import TextContract
from leporello.testing.texts import Echo

_SIZE = 90  # characters of a chunk that a retriever is given
_ROUNDING = 1e-3  # by which a network's scores may differ in other company
_LONGEST = 60.0  # seconds, for a combiner that does not end


class ChunkerContract(TextContract):
    """Spans in the document's own characters; what lies in none is told by the ledger."""

    kind = "chunker"

    @staticmethod
    def work(made: Any, inputs: Sequence[Example]) -> list[Any]:
        """Returns the spans of each example's document."""
        with collect_notes():
            return [[c.span for c in divide(made, e.document, e.question)] for e in inputs]

    def test_spans_are_in_order_and_the_rest_is_counted(self, maker: Maker, inputs: Any) -> None:
        """By their starts; they may overlap. The ledger has what lies in no chunk."""
        made = maker()
        for example, spans in zip(inputs, self.worked(made, inputs), strict=True):
            if spans != sorted(set(spans)):
                fail(made, f"must yield spans by their starts, each once: {spans!r:.200}")
            with collect_notes():
                [selection] = select(self.pipeline(made), [example])
            text = example.document.text
            if selection.unchunked != len("".join(text.split())) - letters(text, merge(spans)):
                fail(made, "leaves out text that the ledger does not count")


class _TogetherContract(TextContract):
    """What holds where examples are worked on together: none changes what comes of another.

    Attributes:
        in_pipeline: Whether the stage gets the pipeline that lacks it, and examples.
    """

    in_pipeline: ClassVar[bool] = False

    def inputs_of(self, examples: Sequence[Example]) -> Any:
        """Returns the examples, with the pipeline if that is wanted."""
        return (self.pipeline(None), examples) if self.in_pipeline else examples

    def test_an_example_comes_out_alone_as_among_others(self, maker: Maker) -> None:
        """Neither the other examples of a call nor their order change what is made of it."""
        made, cases = maker(), self.cases()
        together = self.worked(made, self.inputs_of(cases))
        alone = [self.worked(made, self.inputs_of([case]))[0] for case in cases]
        self.agree(made, together, alone, "when each example was alone")
        back = self.worked(made, self.inputs_of(cases[::-1]))
        self.agree(made, together, back[::-1], "when examples came in another order")


class EnricherContract(_TogetherContract):
    """Passages of the document's own chunks, whatever the reader says."""

    kind = "enricher"
    in_pipeline = True

    @staticmethod
    def work(made: Any, inputs: tuple[Pipeline, Sequence[Example]]) -> list[Any]:
        """Returns the passages of each example's document, checked as a run checks them."""
        stages = dataclasses.replace(inputs[0], enricher=made)
        with collect_notes():
            return [
                to_table(EnricherRunner(stages).passages_of(_chunks(e.document))) for e in inputs[1]
            ]


class RetrieverContract(_TogetherContract):
    """Chunks of the document that was asked about, best first, whatever else is asked of it."""

    kind = "retriever"

    @staticmethod
    def work(made: Any, inputs: Sequence[Example]) -> list[Any]:
        """Returns (start, end, score) of each hit; all questions of a document at once."""
        found = []
        with collect_notes():
            for _, group in groupby(inputs, lambda example: id(example.document)):
                examples = [*group]
                found += retrieve(made, examples, _chunks(examples[0].document))
        return [[(hit.chunk.start, hit.chunk.end, hit.score) for hit in hits] for hits in found]

    def test_hits_come_best_first_and_once(self, maker: Maker, inputs: Any) -> None:
        """At most `k` of them, where it has such a parameter; none where there are no chunks."""
        made = maker()
        for hits in self.worked(made, inputs):
            scores = [score for _, _, score in hits]
            if scores != sorted(scores, reverse=True) or len(hits) > getattr(made, "k", len(hits)):
                fail(made, f"must return hits best first, and at most `k`: {hits!r:.200}")
            if len({hit[:2] for hit in hits}) < len(hits):
                fail(made, f"returns a chunk twice: {hits!r:.200}")
        if any(self.worked(made, self.case(""), "a document without chunks")):
            fail(made, "found hits where there are no chunks")

    def test_search_only_names_what_no_index_depends_on(self, maker: Maker, tmp_path: Path) -> None:
        """Retrievers that differ in nothing else share one index, which the cache holds."""
        made, examples = maker(), self.cases()
        for example in examples:
            example.document.use_cache(Cache(tmp_path))
        type(self).work(made, examples)
        for name, changed in variants(made) if search_only(made) else ():
            kept, new = type(self).work(changed, examples), self.worked(changed, examples)
            if name in search_only(made) and not alike(kept, new, self.tolerance):
                fail(made, f"has an index that depends on {name!r}: take it out of `search_only`")


class ReaderContract(TextContract):
    """One output an input, in order, that belongs to its own input."""

    kind = "reader"
    refusals: ClassVar[tuple[type[Exception], ...]] = (ValueError,)

    @staticmethod
    def work(made: Any, inputs: Sequence[Read]) -> list[Any]:
        """Returns the outputs, checked as a run checks them."""
        return [dataclasses.astuple(output) for output in read(made, inputs)]

    def inputs_of(self, examples: Sequence[Example]) -> list[Read]:
        """Returns one input an example: two halves of its document, and what it asks.

        Override it for a reader of pairs, or of what else its combiner gives it.
        """
        reads = []
        for e in examples:
            half, end = len(e.document.text) // 2, len(e.document.text)
            halves = (e.document.chunk(0, half), e.document.chunk(half, end))
            reads.append(Read(halves, e.question, e.instruction, e.choices, title=e.document.title))
        return reads

    def shares(self, made: object) -> bool:
        """Returns whether it says that several threads may call it at once, by `slots`."""
        return bool(getattr(made, "slots", 0))

    def test_an_answer_is_its_own_inputs_in_any_company(self, maker: Maker, inputs: Any) -> None:
        """To the last digit where the class says `depends_on_batch = False`."""
        made, chance = maker(), random.Random(0)
        alone = [self.worked(made, [one])[0] for one in inputs]
        exact = getattr(made, "depends_on_batch", True) is False
        for size in (2, 5, len(inputs)):
            order, reader = chance.sample(range(len(inputs)), len(inputs)), maker()
            for group in (order[n : n + size] for n in range(0, len(order), size)):
                got = self.worked(reader, [inputs[n] for n in group])
                expected = [alone[n] for n in group]
                if not alike(expected, got, 0.0 if exact else max(self.tolerance, _ROUNDING)):
                    fail(
                        made,
                        f"says {expected!r:.200} to inputs alone, and {got!r:.200} in company:"
                        + " take back `depends_on_batch = False`" * exact
                        + " padding, masks or a state may leak between inputs" * (not exact),
                    )

    def test_every_text_has_a_number_of_tokens(self, maker: Maker) -> None:
        """A longer text has no fewer; and no input gives no output."""
        made = maker()
        self.worked(made, [], "no input")
        counts = made.count(["", "one", "one two three " * 9])
        if len(counts) != len("abc") or [*counts] != sorted(counts) or counts[0] == counts[-1]:
            fail(
                made,
                "must count the tokens of each text in order; of an empty text, a word and 27 words"
                f" it counts {counts!r:.80}",
            )


class CombinerContract(_TogetherContract):
    """An answer to each example after some rounds, whatever the reader says."""

    kind = "combiner"
    in_pipeline = True

    @staticmethod
    def work(made: Any, inputs: tuple[Pipeline, Sequence[Example]]) -> list[Any]:
        """Returns what a run writes of each example: answer, reads, outputs, ledger."""
        rows = _run(dataclasses.replace(inputs[0], combiner=made), inputs[1])
        if failed := [row["failure"] for row in rows if "failure" in row]:
            raise RuntimeError(f"{failed[0]['stage']}: {failed[0]['error']}")
        return [{key: value for key, value in row.items() if key != "done"} for row in rows]

    def test_a_failed_read_fails_no_other_example(self, maker: Maker, inputs: Any) -> None:
        """It is thrown into the generator, which may go on without it or pass it on."""
        made, (stages, examples) = maker(), inputs
        stages = dataclasses.replace(stages, reader=_Refusing(), combiner=made)
        alone = [_run(stages, [one])[0].get("prediction") for one in examples]
        together = [row.get("prediction") for row in _run(stages, examples)]
        self.agree(made, alone, together, "beside examples whose reads failed")


@dataclasses.dataclass(frozen=True)
class _Refusing(Echo):
    """Refuses some inputs, by their text."""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order."""
        if any(len(self.render(one)) % 3 == 0 for one in inputs):
            raise ValueError("refused by the test")
        return super().read(inputs)


def _run(stages: Pipeline, examples: Sequence[Example]) -> Any:
    alone = threading.current_thread() is threading.main_thread()  # others can have no limit
    limits = Limits(example_timeout=_LONGEST if alone else None)
    return rows_of(None, examples, stages, limits)


def _chunks(document: Document) -> tuple[Chunk, ...]:
    """Returns a document cut at every so many characters."""
    end = len(document.text)
    return tuple(document.chunk(n, min(n + _SIZE, end)) for n in range(0, end, _SIZE))
