"""Slots: the order of replies does not change rows."""

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from command_line import until
from toy_stages import All, TwoRounds, Words, joined, questions

from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.records import Document, Example, Output, Read
from leporello.engine.database import counts_in
from leporello.engine.failures import Attempts, Phase
from leporello.engine.reading import BatchReaders
from leporello.engine.rounds import Rounds
from leporello.engine.selection import by_document, select_document
from leporello.engine.shard_rows import Rows, rows_of
from leporello.engine.slots import Slots
from leporello.engine.store import MemoryStore
from leporello.testing.text_contract import killed_after

COUNT = 32


@dataclass(frozen=True)
class Hash:
    """Answers with a hash of the read."""

    depends_on_batch = False
    read_questions: list[str] = field(default_factory=list)

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        [read] = inputs
        self.read_questions.append(read.question)
        if read.question == "broken":
            raise RuntimeError("cannot read this")
        if read.question == "wrong":
            raise UserError("the key is wrong")
        if read.question == "leaves":
            raise SystemExit(3)
        return [Output(hashlib.sha256(joined(read).encode()).hexdigest()[:8], score=0.5)]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [0 for _ in texts]


@dataclass(frozen=True)
class LastFirst(Hash):
    """Waits until all slots are in use, and answers the last read first.

    At the end, when fewer reads remain than slots, it does not wait for more.
    """

    slots: Slots | None = None
    waiting: list[threading.Event] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        assert self.slots
        is_next = threading.Event()
        with self.lock:
            self.waiting.append(is_next)
            if len(self.waiting) >= min(self.slots.count, self.slots.waiting):
                self.waiting.pop().set()
        while not is_next.wait(0.01):
            with self.lock:  # other reads have returned, so fewer remain
                if len(self.waiting) >= min(self.slots.count, self.slots.waiting):
                    self.waiting.pop().set()
        return super().read(inputs)


def run_in_slots(
    path: Path, examples: Sequence[Example], slots: Slots, reader: Any = None, **options: Any
) -> Rows:
    stages = Pipeline(Words(), All(), reader or Hash(), TwoRounds())
    return rows_of(path, examples, stages, slots=slots, **options)


def with_questions(examples: Sequence[Example], **questions: str) -> list[Example]:
    return [replace(e, question=questions.get(e.id, e.question)) for e in examples]


def test_replies_out_of_order_give_the_predictions_of_batches(tmp_path: Path) -> None:
    examples = questions(40)
    with Slots(COUNT) as slots:
        reader = LastFirst(slots=slots)
        rows = run_in_slots(tmp_path / "slots.sqlite", examples, slots, reader)
    assert [row["prediction"]["id"] for row in rows] == [example.id for example in examples]

    @dataclass(frozen=True)
    class Batches(Hash):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            return [super(Batches, self).read([read])[0] for read in inputs]

    stages = Pipeline(Words(), All(), Batches(), TwoRounds())
    assert rows == rows_of(tmp_path / "batches.sqlite", examples, stages)


def test_all_slots_read_at_once(tmp_path: Path) -> None:
    """Over examples and documents: no read waits for the slowest of a batch."""
    barrier = threading.Barrier(COUNT, timeout=60)

    @dataclass(frozen=True)
    class Together(Hash):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            if len(inputs[0].passages) == 1 and inputs[0].question == "w":
                barrier.wait()  # passes only if all slots are in use at once
            return super().read(inputs)

    with Slots(COUNT) as slots:
        document = Document("d", "one two")
        examples = [Example(f"e{n}", document, "w") for n in range(COUNT)]
        rows = run_in_slots(tmp_path / "s.sqlite", examples, slots, Together())
    assert len(rows) == COUNT


def test_examples_finish_while_another_shard_waits() -> None:
    """Two shards share the slots."""

    def shard(examples: Sequence[Example]) -> Rounds:
        stages = Pipeline(Words(), All(), Hash(), TwoRounds())
        run = Rounds(BatchReaders(stages), MemoryStore(), slots=slots)
        for first, group in by_document(examples):
            run.add(first, group, select_document(stages, group))
        return run

    with Slots(4) as slots:
        first, second = shard(questions(1)), shard(questions(9))
        second.finish()
        while not first.is_idle:
            second.wait()
        first.finish()
    assert first.store.done == {0}
    assert second.store.done == {*range(9)}


def test_a_shard_killed_at_every_commit_ends_with_the_same_rows(tmp_path: Path) -> None:
    examples = questions(17)
    with Slots(4) as slots:
        expected = run_in_slots(tmp_path / "unbroken.sqlite", examples, slots)
    reads = sum(len(row["calls"]) for row in expected)
    for commits in range(2, 60, 8):
        path, first, second = tmp_path / f"killed {commits}.sqlite", Hash(), Hash()
        with killed_after(commits) as killed, Slots(1) as slots:
            run_in_slots(path, examples, slots, first)
        assert killed
        with Slots(4) as slots:
            assert run_in_slots(path, examples, slots, second) == expected
        assert reads - len(first.read_questions) <= len(second.read_questions) < reads


@pytest.mark.parametrize(
    ("question", "message"),
    [("broken", "RuntimeError: cannot read this"), ("leaves", "SystemExit: 3")],
)
def test_a_read_that_fails_fails_alone(tmp_path: Path, question: str, message: str) -> None:
    examples = with_questions(questions(12), e3=question)
    with Slots(4) as slots:
        rows = run_in_slots(tmp_path / "s.sqlite", examples, slots)
    [failure] = [row["failure"] for row in rows if "failure" in row]
    assert (failure["id"], failure["stage"], failure["error"]) == ("e3", "reader", message)
    assert len(rows) == 12


def test_a_user_error_ends_the_run_and_keeps_finished_examples(tmp_path: Path) -> None:
    path, examples = tmp_path / "s.sqlite", questions(40)
    with pytest.raises(UserError, match="the key is wrong"), Slots(COUNT) as slots:
        run_in_slots(path, with_questions(examples, e33="wrong"), slots)
    until(lambda: threading.active_count() < COUNT)
    assert counts_in(path).examples
    with Slots(COUNT) as slots:
        resumed = run_in_slots(path, examples, slots)
        assert resumed == run_in_slots(tmp_path / "unbroken.sqlite", examples, slots)


def test_reads_in_slots_are_not_logged(tmp_path: Path) -> None:
    """Thousands of reads may run at once, so the last line of the log would prove nothing."""
    started: list[Phase] = []
    attempts = Attempts()
    attempts.record = started.append
    with Slots(4) as slots:
        run_in_slots(tmp_path / "s.sqlite", questions(6), slots, attempts=attempts)
    assert {kind for kind, *_ in started} == {"select", "load", "combiner"}
    assert counts_in(tmp_path / "s.sqlite").examples == 6
