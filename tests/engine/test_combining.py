"""An example in the engine: inputs of its stages, and its prediction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from toy_stages import All, Mates, Returning, TwoRounds, Words, questions

from leporello.combiners import BestOf, Stuff
from leporello.config import Pipeline
from leporello.config.metrics import metrics_of
from leporello.core.coverage import PARTS
from leporello.core.errors import ReadError
from leporello.core.records import (
    JSON,
    Chunk,
    Combination,
    Document,
    Example,
    Fit,
    Generates,
    Hit,
    Output,
    Read,
    Reply,
    Search,
    Span,
)
from leporello.engine.shard_rows import Rows, rows_of


@dataclass(frozen=True)
class Containing:
    """Returns the chunks that contain the question."""

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        return [[Hit(c, 1.0) for c in chunks if question in c.text] for question in questions]


def run(examples: Sequence[Example], **stages: Any) -> Rows:
    defaults = {"chunker": Words(), "retriever": Containing(), "reader": Mates()}
    return rows_of(None, examples, Pipeline(**{**defaults, "combiner": TwoRounds(), **stages}))


def test_requests_without_a_read_are_answered_at_once() -> None:
    @dataclass(frozen=True)
    class Curious:
        def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
            more, fits, writes = yield [Search("w1"), Fit(Read(("a", "b", "c"))), Generates()]
            return f"{len(more)} {more[0].chunk.text} {fits} {writes}"

    example = Example("e", Document("d", "w0 w1 w2"), question="w0")
    rows = run([example], combiner=Curious())
    assert rows[0]["prediction"]["prediction"] == "1 w1 3 False"
    assert [hit[:2] for hit in rows[0]["prediction"]["hits"]] == [[0, 2], [3, 5]]


def test_a_combiner_that_reads_nothing_need_not_be_a_generator() -> None:
    """It returns its answer at once; a value that is not a text is written as JSON."""

    @dataclass(frozen=True)
    class Count:
        def combine(self, example: Example, hits: Sequence[Hit]) -> JSON:
            return {"hits": len(hits)}

    example = Example("e", Document("d", "w0 w1"), question="w")
    rows = run([example], combiner=Count())
    assert rows[0]["prediction"]["prediction"] == '{"hits": 2}'
    assert rows[0]["prediction"]["raw"] == {"hits": 2}


def test_no_stage_sees_references_or_evidence() -> None:
    """The combiner's example has neither, unless its class declares `sees_gold`."""

    @dataclass(frozen=True)
    class Peeking:
        def combine(self, example: Example, hits: Sequence[Hit]) -> JSON:
            return len(example.references) + len(example.evidence)

    @dataclass(frozen=True)
    class Oracle(Peeking):
        sees_gold = True

    example = Example("e", Document("d", "w"), references=("r",), evidence=(Span(0, 1),))
    blind = run([example], combiner=Peeking())
    seeing = run([example], combiner=Oracle())
    assert (blind[0]["prediction"]["raw"], seeing[0]["prediction"]["raw"]) == (0, 2)


def test_the_coverage_counts_selected_read_and_cut_characters() -> None:
    short = Returning(Output("x", read=(Span(0, 2),), cut=3))
    example = Example("e", Document("d", "w0 w11 z"), question="w")
    rows = run([example], reader=short, combiner=Stuff())
    ledger = rows[0]["prediction"]["coverage"]
    assert (ledger["selected"], ledger["read"], ledger["cut"]) == (5, 2, 3)
    assert sum(ledger[part] for part in PARTS) == 8
    assert rows[0]["prediction"]["read"] == [[0, 2]]


def test_scores_that_are_not_numbers_are_ignored() -> None:
    """NaN is not written to files, since JSON does not have it."""
    rows = run(questions(1), reader=Returning(Output("x", score=float("nan"))))
    assert rows[0]["calls"][0]["output"]["score"] is None


def test_offsets_may_be_numpy_numbers() -> None:
    @dataclass(frozen=True)
    class Arrays:
        def chunk(self, document: Document) -> Iterator[Span]:
            offsets: Any = np.array([0, 2])
            yield Span(*offsets)

    rows = run(questions(1), chunker=Arrays())
    assert rows[0]["prediction"]["hits"] == [[0, 2, 1.0]]


def test_a_task_may_normalise_answers_for_its_metric() -> None:
    """The prediction is normalised; `raw` keeps the answer of the combiner."""
    example = Example("e", Document("d", "w"), question="w", references=("W",))
    stages = Pipeline(Words(), Containing(), Mates(), Stuff())
    [row] = rows_of(
        None, [example], stages,
        metrics=["exact_match"],
        normalise=lambda text, example: f"{text[:1].upper()}{example.question[1:]}",
    )  # fmt: skip
    assert (row["prediction"]["prediction"], row["prediction"]["raw"]) == ("W", "w/w/1")
    [metric] = metrics_of(["exact_match"]).values()
    assert metric.score(row["statistics"]["exact_match"]) == 100


@dataclass(frozen=True)
class Catching:
    """Reads each word of a document; failed reads are thrown into it."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        try:
            outputs = yield [Read((hit.chunk,)) for hit in hits]
        except ReadError as error:
            return f"caught {error}"
        return ", ".join(output.text for output in outputs)


class Taking(Catching):
    """Does the same, with failed reads as values."""

    takes_failed_reads = True

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        replies = yield [Read((hit.chunk,)) for hit in hits]
        return ", ".join(map(_shown, replies))


@dataclass(frozen=True)
class NotBad:
    """Raises at the word `bad`."""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        texts = [getattr(read.passages[0], "text", "") for read in inputs]
        if "bad" in texts:
            raise ValueError("bad word")
        return [*map(Output, texts)]


def _shown(reply: Reply) -> str:
    return str(reply) if isinstance(reply, ReadError) else reply.text


@pytest.mark.parametrize("schema", ["", '{"type": "string"}'])
@pytest.mark.parametrize("nested", [False, True])
def test_failed_reads_are_values_for_a_combiner_that_declares_it(nested: bool, schema: str) -> None:
    """It is thrown into other combiners; also for nested combiners."""
    example = Example("e", Document("d", "good bad fine"), "", schema=schema)

    def answer(combiner: Any) -> Any:
        outer = BestOf((combiner, combiner)) if nested else combiner
        [row] = run([example], retriever=All(), reader=NotBad(), combiner=outer)
        return row["prediction"]["prediction"]

    assert answer(Catching()) == "caught ValueError: bad word"
    assert answer(Taking()) == "good, ValueError: bad word, fine"
