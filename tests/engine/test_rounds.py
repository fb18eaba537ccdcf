"""Rounds: batches, isolation of failures, and resuming after a kill."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from toy_stages import All, Chain, Mates, TwoRounds, Words, joined, questions

from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.core.errors import Stopped, UserError
from leporello.core.records import Chunk, Document, Example, Hit, Output, Read
from leporello.engine.limits import Limits
from leporello.engine.progress import Listener
from leporello.engine.shard_rows import Rows, rows_of
from leporello.testing.text_contract import resumed

SMALL = Limits(max_active=5, window=4)
LONG = Example("e", Document("long", " ".join(f"w{n}" for n in range(50))), question="w")


def run(
    path: Path | None, examples: Sequence[Example], limits: Limits = SMALL, **stages: Any
) -> Rows:
    defaults = {"chunker": Words(), "retriever": All(), "reader": Mates(), "combiner": TwoRounds()}
    return rows_of(path, examples, Pipeline(**{**defaults, **stages}), limits)


def test_reads_of_many_examples_are_pooled() -> None:
    reader = Mates()
    run(None, questions(40), Limits(max_active=20, window=8), reader=reader)
    first = [8, 8, 8, 8, 8, 4, 8, 8, 4]
    second = [8, 8, 8, 8, 8, 7, 8, 8, 4]
    assert [len(batch) for batch in reader.batches] == first + second


def test_batches_follow_the_order_of_examples_and_reads() -> None:
    """In a group of `max_active` examples all first rounds precede all second rounds."""
    examples = [Example(f"e{n}", Document(f"d{n}", f"a{n} b{n}")) for n in range(3)]
    reader = Mates()
    run(None, examples, Limits(max_active=2, window=3), reader=reader)
    begins = [[text[:2] for text in batch] for batch in reader.batches]
    assert begins == [["a0", "b0", "a1"], ["b1"], ["a0", "a1"], ["a2", "b2"], ["a2"]]


@dataclass(frozen=True)
class Quick(Mates):
    """Prefers large batches."""

    window_size = 40


@pytest.mark.parametrize(("reader", "most"), [(Mates(), 8), (Quick(), 40)])
def test_a_batch_is_as_large_as_the_run_or_the_reader_allows(reader: Mates, most: int) -> None:
    run(None, [LONG], Limits(max_active=5, window=8), reader=reader)
    assert max(map(len, reader.batches)) == most


def test_a_failing_batch_is_halved_until_the_failing_read_is_isolated() -> None:
    examples = [Example(f"e{n}", Document(f"d{n}", f"w{n}"), "?") for n in range(6)]
    examples[2] = replace(examples[2], question="unreadable")
    reader = Mates()
    rows = run(None, examples, Limits(window=6), reader=reader)
    begins = [[text[:2] for text in batch] for batch in reader.batches]
    second_round = ["w0", "w1", "w3", "w4", "w5"]
    assert begins == [["w0"], ["w1"], ["w3", "w4", "w5"], second_round]
    [failure] = [row["failure"] for row in rows if "failure" in row]
    assert (failure["id"], failure["stage"]) == ("e2", "reader")
    assert failure["error"] == "RuntimeError: cannot read this"
    assert "in read" in failure["traceback"]


@dataclass(frozen=True)
class Crowded(Mates):
    """Fails at more than two reads of a document; their examples receive a note."""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        if sum("w0" in joined(read) for read in inputs) > 2:
            raise RuntimeError("too many")
        return super().read(inputs)


@pytest.mark.parametrize("reader", [Mates, Crowded])
@pytest.mark.parametrize("combiner", [Stuff(), TwoRounds(), Chain()])
def test_a_run_killed_at_every_commit_ends_with_the_same_rows(
    tmp_path: Path, combiner: Any, reader: Any
) -> None:
    """Answers, failures and notes: a resumed run forms the batches of an uninterrupted run."""
    examples = questions(11, documents=5)  # in three groups
    examples[6] = replace(examples[6], question="unreadable")
    expected = run(None, examples, combiner=combiner, reader=reader())
    assert sum("failure" in row for row in expected) == 1
    assert any(row.get("notes") for row in expected) == (reader is Crowded)
    rerun = resumed(lambda path: run(path, examples, combiner=combiner, reader=reader()), tmp_path)
    tries = [*rerun]
    assert len(tries) > 8
    assert all(rows == expected for rows in tries)


def test_a_resumed_retriever_receives_the_same_questions(tmp_path: Path) -> None:
    """It receives all questions on a document in one call, also those already answered."""

    @dataclass(frozen=True)
    class Batching:
        def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
            return [[Hit(chunk, float(len(questions))) for chunk in chunks] for _ in questions]

    examples = questions(20)
    expected = run(None, examples, retriever=Batching())
    tries = resumed(lambda path: run(path, examples, retriever=Batching()), tmp_path, (3, 7, 11))
    assert [*tries] == [expected] * 3


def test_a_user_error_stops_the_run_and_keeps_finished_examples(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Unplugged(Mates):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            if len(self.batches) == 3:
                raise UserError("the model is missing")
            return super().read(inputs)

    first, second = Unplugged(), Mates()
    with pytest.raises(UserError, match="the model is missing"):
        run(tmp_path / "s.sqlite", questions(40), reader=first)
    unbroken = Mates()
    expected = run(None, questions(40), reader=unbroken)
    assert run(tmp_path / "s.sqlite", questions(40), reader=second) == expected
    assert first.batches + second.batches == unbroken.batches


class Asks:
    """Enricher that reads each chunk, and returns the chunks."""

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Any:
        yield [Read((chunk,), document.title) for chunk in chunks]
        return [*chunks]


@pytest.mark.parametrize("reason", [Stopped("interrupted"), EOFError()])
def test_a_stop_during_enriching_fails_no_question(tmp_path: Path, reason: Exception) -> None:
    """Neither an interrupt nor the end of the driver."""

    def check() -> None:
        raise reason

    path = tmp_path / "store"
    stages = Pipeline(Words(), All(), Mates(), Stuff(), enricher=Asks())
    with pytest.raises(type(reason)):
        rows_of(path, questions(3), stages, listener=Listener(check=check))
    rows = rows_of(path, questions(3), stages)
    assert [row for row in rows if "failure" in row] == []
