"""Reads that go out as soon as there is room: the same rows in whatever order they return."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from command_line import until
from toy_stages import All, TwoRounds, Words, joined, questions

from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.records import Document, Example, Output, Read
from leporello.engine.combining import CombinerRunner
from leporello.engine.database import counts_in
from leporello.engine.failures import Attempts, Phase
from leporello.engine.reading import BatchReaders
from leporello.engine.results.finished import FinishedExample
from leporello.engine.rounds import Rounds
from leporello.engine.selection import by_document, select_document
from leporello.engine.shard_rows import Rows, rows_of
from leporello.engine.slots import Slots
from leporello.engine.store import MemoryStore
from leporello.testing.kills import killed_after

COUNT = 32


@dataclass(frozen=True)
class Hash:
    """Answers with a hash of what it read."""

    depends_on_batch = False
    asked: list[str] = field(default_factory=list)

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        [read] = inputs
        self.asked.append(read.question)
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
    """Answers a read only once so many are asked at a time, and those that were asked last first.

    The last few are fewer: they are answered as soon as no more can come.
    """

    slots: Slots | None = None
    waiting: list[threading.Event] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        assert self.slots
        ours = threading.Event()
        with self.lock:
            self.waiting.append(ours)
            if len(self.waiting) >= min(self.slots.count, self.slots.waiting):
                self.waiting.pop().set()
        while not ours.wait(0.01):
            with self.lock:  # others have returned, so that fewer are left than were waited for
                if len(self.waiting) >= min(self.slots.count, self.slots.waiting):
                    self.waiting.pop().set()
        return super().read(inputs)


def slid(
    path: Path, asked: Sequence[Example], slots: Slots, reader: Any = None, **options: Any
) -> Rows:
    """Finishes the examples in slots."""
    stages = Pipeline(Words(), All(), reader or Hash(), TwoRounds())
    return rows_of(path, asked, stages, slots=slots, **options)


def with_questions(asked: Sequence[Example], **questions: str) -> list[Example]:
    """Returns the examples, with other questions for some ids."""
    return [
        Example(e.id, e.document, questions.get(e.id, e.question), references=e.references)
        for e in asked
    ]


def test_replies_out_of_order_give_the_predictions_of_windows(tmp_path: Path) -> None:
    """As a reader of windows gives them, in the shard's order."""
    examples = questions(40)
    with Slots(COUNT) as slots:
        reader = LastFirst(slots=slots)
        finished = slid(tmp_path / "sliding.sqlite", examples, slots, reader)
    assert [row["prediction"]["id"] for row in finished] == [example.id for example in examples]

    @dataclass(frozen=True)
    class Windows(Hash):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            return [super(Windows, self).read([one])[0] for one in inputs]

    stages = Pipeline(Words(), All(), Windows(), TwoRounds())
    assert finished == rows_of(tmp_path / "windows.sqlite", examples, stages)


def test_as_many_reads_are_under_way_as_there_are_slots(tmp_path: Path) -> None:
    """Over examples and documents: nothing waits for the slowest of a window."""
    barrier = threading.Barrier(COUNT, timeout=60)

    @dataclass(frozen=True)
    class Together(Hash):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            if len(inputs[0].passages) == 1 and inputs[0].question == "w":
                barrier.wait()  # passes only if all slots are taken at a time
            return super().read(inputs)

    with Slots(COUNT) as slots:
        document = Document("d", "one two")
        asked = [Example(f"e{n}", document, "w") for n in range(COUNT)]
        found = slid(tmp_path / "j.sqlite", asked, slots, Together())
    assert len(found) == COUNT


def test_examples_of_another_shard_that_finish_meanwhile_are_yielded() -> None:
    """Two shards share the slots; their own shard yields them when it finishes."""

    def shard(asked: Sequence[Example]) -> tuple[Rounds, list[int]]:
        stages = Pipeline(Words(), All(), Hash(), TwoRounds())
        run = Rounds(CombinerRunner(stages), BatchReaders(stages), MemoryStore(), slots=slots)
        found: list[FinishedExample] = []
        for first, group in by_document(asked):
            found += run.add(first, group, select_document(stages, group, None).selections)
        return run, [example.number for example in found]

    with Slots(4) as slots:
        (first, begun), (second, also) = shard(questions(1)), shard(questions(9))
        also += [example.number for example in second.finish()]
        while not first.is_idle:
            second.wait()
        begun += [example.number for example in first.finish()]
    assert begun == [0]
    assert sorted(also) == [*range(9)]


def test_a_shard_killed_at_every_commit_ends_with_the_same_rows(tmp_path: Path) -> None:
    """Outputs that are stored are not read again."""
    asked = questions(17)
    with Slots(4) as slots:
        whole = slid(tmp_path / "whole.sqlite", asked, slots)
    reads = sum(len(row["calls"]) for row in whole)
    for commits in range(2, 60, 4):
        path, first, second = tmp_path / f"killed {commits}.sqlite", Hash(), Hash()
        with killed_after(commits) as killed, Slots(1) as slots:
            slid(path, asked, slots, first)
        assert killed
        with Slots(4) as slots:
            assert slid(path, asked, slots, second) == whole
        assert reads - len(first.asked) <= len(second.asked) < reads


@pytest.mark.parametrize(
    ("question", "told"),
    [("broken", "RuntimeError: cannot read this"), ("leaves", "SystemExit: 3")],
)
def test_a_read_that_fails_fails_alone(tmp_path: Path, question: str, told: str) -> None:
    """Once its round is complete; the others are answered."""
    asked = with_questions(questions(12), e3=question)
    with Slots(4) as slots:
        found = slid(tmp_path / "j.sqlite", asked, slots)
    failed = [row["failure"] for row in found if "failure" in row]
    assert [(row["id"], row["stage"], row["error"]) for row in failed] == [("e3", "reader", told)]
    assert len(found) == 12


def test_a_mistake_of_the_users_ends_it_and_keeps_what_is_done(tmp_path: Path) -> None:
    """Whichever thread meets it; the next run goes on from there."""
    path, asked = tmp_path / "j.sqlite", questions(40)
    with pytest.raises(UserError, match="the key is wrong"), Slots(COUNT) as slots:
        slid(path, with_questions(asked, e33="wrong"), slots)
    until(lambda: threading.active_count() < COUNT)
    assert counts_in(path).examples
    with Slots(COUNT) as slots:
        resumed = slid(path, asked, slots)
        assert resumed == slid(tmp_path / "whole.sqlite", asked, slots)


def test_after_a_death_one_read_is_under_way_at_a_time(tmp_path: Path) -> None:
    """So that it is known which one kills; what has killed often enough is not read."""
    asked = questions(6, documents=2)
    begun: list[Phase] = []
    attempts = Attempts(7, cause="it died")
    attempts.record = begun.append
    attempts.deaths[("combine", 7, 0)] = 1
    attempts.deaths[("read", 7, 2, 0)] = 3
    reader = Hash()
    with Slots(COUNT) as slots:
        found = slid(tmp_path / "j.sqlite", asked, slots, reader, attempts=attempts)
    failed = [(row["done"], row["failure"]["error"]) for row in found if "failure" in row]
    assert failed == [(2, "it died")]
    reads = [phase for phase in begun if phase[0] == "read"]
    assert len(reads) == len(reader.asked) + 1
    assert len(found) == 6


def test_without_a_death_no_read_is_written_down(tmp_path: Path) -> None:
    """Thousands are under way: what is written down tells nothing of them."""
    begun: list[Phase] = []
    attempts = Attempts()
    attempts.record = begun.append
    with Slots(4) as slots:
        slid(tmp_path / "j.sqlite", questions(6), slots, attempts=attempts)
    assert {kind for kind, *_ in begun} == {"combine"}
    assert counts_in(tmp_path / "j.sqlite").examples == 6
