"""Contracts of chunkers, enrichers, retrievers, readers and combiners."""

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
from leporello.engine.reading import BatchReaders
from leporello.engine.selection import select
from leporello.engine.shard_rows import rows_of
from leporello.testing.contract import Maker, alike, fail, variants
from leporello.testing.text_contract import TextContract
from leporello.testing.texts import Echo

_SIZE = 90  # characters of a retriever's chunks
_ROUNDING = 1e-3  # difference that a network's scores may have between batches
_LONGEST = 60.0  # seconds after which a combiner that does not end fails


class ChunkerContract(TextContract):
    """A chunker yields spans of the document; the ledger counts text that is in no chunk."""

    kind = "chunker"

    @staticmethod
    def work(instance: Any, inputs: Sequence[Example]) -> list[Any]:
        """Returns the spans of each example's document."""
        with collect_notes():
            return [[c.span for c in divide(instance, e.document, e.question)] for e in inputs]

    def test_spans_are_in_order_and_the_rest_is_counted(self, maker: Maker, inputs: Any) -> None:
        """Spans are ordered by their starts and may overlap; the ledger counts all other text."""
        chunker = maker()
        for example, spans in zip(inputs, self.results(chunker, inputs), strict=True):
            if spans != sorted(set(spans)):
                fail(chunker, f"must yield spans by their starts, each once: {spans!r:.200}")
            with collect_notes():
                [selection] = select(self.pipeline(chunker), [example])
            text = example.document.text
            if selection.unchunked != len("".join(text.split())) - letters(text, merge(spans)):
                fail(chunker, "leaves out text that the ledger does not count")


class _TogetherContract(TextContract):
    """Contract of stages that take several examples: the examples do not affect each other.

    Attributes:
        in_pipeline: Whether the inputs are a pipeline without the stage, and the examples.
    """

    in_pipeline: ClassVar[bool] = False

    def inputs_of(self, examples: Sequence[Example]) -> Any:
        """Returns the examples, after the pipeline if `in_pipeline` is set."""
        return (self.pipeline(None), examples) if self.in_pipeline else examples

    def test_an_example_comes_out_alone_as_among_others(self, maker: Maker) -> None:
        """The result of an example depends neither on other examples nor on their order."""
        stage, cases = maker(), self.cases()
        together = self.results(stage, self.inputs_of(cases))
        separate = [self.results(stage, self.inputs_of([case]))[0] for case in cases]
        self.agree(stage, together, separate, "when each example was alone")
        backwards = self.results(stage, self.inputs_of(cases[::-1]))
        self.agree(stage, together, backwards[::-1], "when examples had another order")


class EnricherContract(_TogetherContract):
    """An enricher makes passages from the document's chunks, whatever the reader's outputs."""

    kind = "enricher"
    in_pipeline = True

    @staticmethod
    def work(instance: Any, inputs: tuple[Pipeline, Sequence[Example]]) -> list[Any]:
        """Returns the passages of each example's document, checked as in a run."""
        stages = dataclasses.replace(inputs[0], enricher=instance)
        with collect_notes():
            return [
                to_table(EnricherRunner(BatchReaders(stages)).passages_of(_chunks(e.document)))
                for e in inputs[1]
            ]


class RetrieverContract(_TogetherContract):
    """A retriever returns chunks of the question's document, best first, in any batch."""

    kind = "retriever"

    @staticmethod
    def work(instance: Any, inputs: Sequence[Example]) -> list[Any]:
        """Returns (start, end, score) of each hit; all questions on a document form one call."""
        rankings = []
        with collect_notes():
            for _, group in groupby(inputs, lambda example: id(example.document)):
                examples = [*group]
                rankings += retrieve(instance, examples, _chunks(examples[0].document))
        return [[(hit.chunk.start, hit.chunk.end, hit.score) for hit in hits] for hits in rankings]

    def test_hits_come_best_first_and_once(self, maker: Maker, inputs: Any) -> None:
        """At most `k` hits are returned, and no hits for a document without chunks."""
        retriever = maker()
        for hits in self.results(retriever, inputs):
            scores, k = [score for _, _, score in hits], getattr(retriever, "k", len(hits))
            if scores != sorted(scores, reverse=True) or len(hits) > k:
                fail(retriever, f"must return hits best first, and at most `k`: {hits!r:.200}")
            if len({hit[:2] for hit in hits}) < len(hits):
                fail(retriever, f"returns a chunk twice: {hits!r:.200}")
        if any(self.results(retriever, self.case(""), "a document without chunks")):
            fail(retriever, "returned hits for a document without chunks")

    def test_search_only_names_what_no_index_depends_on(self, maker: Maker, tmp_path: Path) -> None:
        """Retrievers that differ only in these parameters share one index in the cache."""
        retriever, examples = maker(), self.cases()
        for example in examples:
            example.document.use_cache(Cache(tmp_path))
        type(self).work(retriever, examples)
        for name, changed in variants(retriever) if search_only(retriever) else ():
            cached, new = type(self).work(changed, examples), self.results(changed, examples)
            if name in search_only(retriever) and not alike(cached, new, self.tolerance):
                text = f"has an index that depends on {name!r}: remove it from `search_only`"
                fail(retriever, text)


class ReaderContract(TextContract):
    """A reader returns one output per read, in order, that does not depend on other reads."""

    kind = "reader"
    refusals: ClassVar[tuple[type[Exception], ...]] = (ValueError,)

    @staticmethod
    def work(instance: Any, inputs: Sequence[Read]) -> list[Any]:
        """Returns the outputs, checked as in a run."""
        return [dataclasses.astuple(output) for output in read(instance, inputs)]

    def inputs_of(self, examples: Sequence[Example]) -> list[Read]:
        """Returns one read per example: two halves of its document, and its question.

        Override it for a reader that needs other fields, such as a reader of pairs.
        """
        reads = []
        for e in examples:
            half, end = len(e.document.text) // 2, len(e.document.text)
            halves = (e.document.chunk(0, half), e.document.chunk(half, end))
            reads.append(Read(halves, e.question, e.instruction, e.choices, title=e.document.title))
        return reads

    def shares(self, instance: object) -> bool:
        """Returns whether the reader declares `slots`, so that threads may call it at once."""
        return bool(getattr(instance, "slots", 0))

    def test_an_answer_is_its_own_inputs_in_any_company(self, maker: Maker, inputs: Any) -> None:
        """Scores are equal to the last digit if the class declares `depends_on_batch = False`."""
        single, generator = maker(), random.Random(0)
        outputs = [self.results(single, [one_read])[0] for one_read in inputs]
        is_exact = getattr(single, "depends_on_batch", True) is False
        for size in (2, 5, len(inputs)):
            order, reader = generator.sample(range(len(inputs)), len(inputs)), maker()
            for batch in (order[n : n + size] for n in range(0, len(order), size)):
                results = self.results(reader, [inputs[n] for n in batch])
                expected = [outputs[n] for n in batch]
                tolerance = 0.0 if is_exact else max(self.tolerance, _ROUNDING)
                if not alike(expected, results, tolerance):
                    cause = "padding, masks or a state may leak between reads"
                    fail(
                        single,
                        f"returns {expected!r:.200} for single reads, and {results!r:.200} in a"
                        f" batch: {'remove `depends_on_batch = False`' if is_exact else cause}",
                    )

    def test_every_text_has_a_number_of_tokens(self, maker: Maker) -> None:
        """Longer texts have at least as many tokens; the reader accepts an empty batch too."""
        reader = maker()
        self.results(reader, [], "no input")
        counts = reader.count(["", "one", "one two three " * 9])
        if len(counts) != len("abc") or [*counts] != sorted(counts) or counts[0] == counts[-1]:
            fail(
                reader,
                "must count the tokens of each text in order; for an empty text, a word and 27"
                f" words it returned {counts!r:.80}",
            )


class CombinerContract(_TogetherContract):
    """A combiner answers each example after some rounds, whatever the reader's outputs."""

    kind = "combiner"
    in_pipeline = True

    @staticmethod
    def work(instance: Any, inputs: tuple[Pipeline, Sequence[Example]]) -> list[Any]:
        """Returns the rows of a run: each example's answer, reads, outputs and ledger."""
        rows = _run(dataclasses.replace(inputs[0], combiner=instance), inputs[1])
        if failed := [row["failure"] for row in rows if "failure" in row]:
            raise RuntimeError(f"{failed[0]['stage']}: {failed[0]['error']}")
        return [{key: value for key, value in row.items() if key != "done"} for row in rows]

    def test_a_failed_read_fails_no_other_example(self, maker: Maker, inputs: Any) -> None:
        """The generator receives the error, and may catch it or not."""
        combiner, (stages, examples) = maker(), inputs
        stages = dataclasses.replace(stages, reader=_Refusing(), combiner=combiner)
        separate = [_run(stages, [example])[0].get("prediction") for example in examples]
        together = [row.get("prediction") for row in _run(stages, examples)]
        self.agree(combiner, separate, together, "beside examples whose reads failed")


@dataclasses.dataclass(frozen=True)
class _Refusing(Echo):
    """Raises ValueError for some reads, depending on their text."""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per read, in order."""
        if any(len(self.render(one_read)) % 3 == 0 for one_read in inputs):
            raise ValueError("refused by the test")
        return super().read(inputs)


def _run(stages: Pipeline, examples: Sequence[Example]) -> Any:
    is_main = threading.current_thread() is threading.main_thread()  # others get no signals
    limits = Limits(example_timeout=_LONGEST if is_main else None)
    return rows_of(None, examples, stages, limits)


def _chunks(document: Document) -> tuple[Chunk, ...]:
    end = len(document.text)
    return tuple(document.chunk(n, min(n + _SIZE, end)) for n in range(0, end, _SIZE))
