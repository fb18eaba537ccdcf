"""Deaths of workers: how they are counted, and how the item that kills is isolated."""

import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from toy_stages import All, Words

from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.core.errors import UserError
from leporello.core.records import Combination, Document, Example, Hit, Output, Read
from leporello.engine import failures
from leporello.engine.failures import OVERDUE, TRIES, Attempts, ExampleError, Phase
from leporello.engine.limits import Limits
from leporello.engine.shard_rows import rows_of
from leporello.executors.channel import Channel
from leporello.executors.child_process import SharedMemory
from leporello.executors.interface import Death, ShardOrder
from leporello.jobs.shards import Shard

CAUSE = Attempts().cause
WINDOW: Phase = ("window", 0, 2, 0)


class DiedError(BaseException):
    """Simulates the death of a worker."""


def test_a_death_names_the_last_operation(tmp_path: Path) -> None:
    """A worker shares the memory with its parent; before the first operation it is unknown."""
    path = tmp_path / "memory"
    path.write_bytes(bytes(SharedMemory.SIZE))
    with path.open("r+b") as file:
        worker, parent = SharedMemory(file.fileno()), SharedMemory(file.fileno())
    assert parent.death("was lost") == Death("was lost")
    worker.start(3, ("select", 0, 1000))
    worker.start(4, ("load", 0))
    worker.late_at[0] = 7.5
    assert parent.death("was lost") == Death("was lost", 4, ("load", 0))
    assert parent.late_at[0] == 7.5


def test_a_stage_that_closes_the_connection_is_blamed() -> None:
    """The next operation is not started; otherwise it would be the last one."""
    socket_of_worker, socket_of_driver = socket.socketpair()
    channel = Channel(socket_of_worker)
    with socket_of_worker, socket_of_driver:
        channel.check()
    with pytest.raises(EOFError):
        channel.check()


def deaths(*died: Death, shard: int = 0, is_alone: bool = True) -> dict[Phase, int]:
    """Returns the deaths that count for a shard after some deaths of its workers."""
    order = ShardOrder(Shard(shard, 0, 0, ()), (0,))
    for death in died:
        order = order.after(death, is_alone=is_alone)
    assert order.attempt == 1 + len(died)
    return {**order.deaths}


def test_a_death_counts_against_the_last_operation_of_its_shard() -> None:
    """With other open shards their reads run one at a time; an unknown operation counts for all."""
    select = Death("died", 0, ("select", 0, 1))
    assert deaths(select, select) == {("select", 0, 1): 2}
    assert deaths(select, Death("died", 0, WINDOW)) == {("select", 0, 1): 1, WINDOW: 1}
    assert deaths(select, shard=1) == {(): 0}
    assert deaths(Death("was lost"), Death("was lost"), shard=1) == {(): 2}


def test_an_exceeded_deadline_counts_as_all_tries() -> None:
    """It would be exceeded again, so the operation is not retried."""
    late = Death(OVERDUE, 0, WINDOW)
    assert deaths(late) == {WINDOW: TRIES}
    assert deaths(late, is_alone=False) == {WINDOW: 1}


@dataclass
class Worker:
    """A process that reads, or dies at some questions."""

    poison: tuple[str, ...] = ()  # questions that kill it
    deaths: Counter[Phase] = field(default_factory=Counter)  # number of deaths by operation
    # Questions that it has answered, batch by batch.
    batches: list[list[str]] = field(default_factory=list)
    died: int = 0

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        questions = [read.question for read in inputs]
        if {*questions} & {*self.poison}:
            raise DiedError
        self.batches.append(questions)
        return [Output(f"{question} {len(inputs)}") for question in questions]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [0 for _ in texts]

    def finish(self, path: Path, examples: Sequence[Example], combiner: Any = None) -> list[Any]:
        """Runs the shard again after each death, and returns its rows once it is finished."""
        stages = Pipeline(Words(), All(), self, combiner or Stuff())
        limits = Limits(max_active=8, window=4)
        while True:
            started: list[Phase] = []
            attempts = Attempts(0, self.deaths, started.append)
            try:
                return rows_of(path, examples, stages, limits, attempts=attempts)
            except DiedError:
                self.died += 1
                self.deaths[started[-1]] += 1


@pytest.fixture(autouse=True)
def no_catching(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising_deaths(function: Any) -> Any:
        def call(*args: Any) -> Any:
            if isinstance(args[-1], DiedError):
                raise args[-1]
            return function(*args)

        return call

    monkeypatch.setattr(ExampleError, "of", staticmethod(raising_deaths(ExampleError.of)))

    def call(reader: Any, inputs: Sequence[Read]) -> list[Output]:
        return list(reader.read(inputs))

    monkeypatch.setattr("leporello.engine.reading.call_reader", call)


def examples(questions: Sequence[str]) -> list[Example]:
    return [Example(f"e{n}", Document(f"d{n}", "w"), q) for n, q in enumerate(questions)]


QUESTIONS = [f"q{n}" for n in range(12)]


def test_only_the_reads_that_kill_fail(tmp_path: Path) -> None:
    """After three deaths the reads of a batch run one at a time; other batches do not change."""
    worker = Worker(poison=("q5", "q7"))
    rows = worker.finish(tmp_path / "j.sqlite", examples(QUESTIONS))
    failed = [row["failure"] for row in rows if "failure" in row]
    assert [row["id"] for row in failed] == ["e5", "e7"]
    assert {(row["stage"], row["error"]) for row in failed} == {("reader", CAUSE)}
    answers = [row["prediction"]["prediction"] for row in rows if "prediction" in row]
    assert answers == [
        "q0 4", "q1 4", "q2 4", "q3 4", "q4 1", "q6 1", "q8 4", "q9 4", "q10 4", "q11 4"
    ]  # fmt: skip
    # One more death isolates each read.
    alone: dict[Phase, int] = {("read", 0, number, 0): 1 for number in (5, 7)}
    assert worker.deaths == {("read", 0, 4, 0, 4): TRIES, **alone}


def test_two_deaths_at_a_batch_change_nothing(tmp_path: Path) -> None:
    """The third time the complete batch is read."""

    @dataclass
    class Twice(Worker):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            if self.died < TRIES - 1 and inputs[0].question == "q4":
                raise DiedError
            return super().read(inputs)

    worker = Twice()
    rows = worker.finish(tmp_path / "j.sqlite", examples(QUESTIONS))
    assert worker.died == TRIES - 1
    assert rows == Worker().finish(tmp_path / "unbroken.sqlite", examples(QUESTIONS))


@dataclass(frozen=True)
class Deadly:
    """Dies at a question, in the second round."""

    question: str = "q5"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        [first] = yield [Read((hits[0].chunk,), example.question)]
        if example.question == self.question:
            raise DiedError
        [second] = yield [Read((first.text,), example.question)]
        return f"{first.text} {second.text}"


def test_an_example_whose_combiner_kills_fails_alone(tmp_path: Path) -> None:
    """Also after it has received outputs; the other examples do not change."""
    worker = Worker()
    rows = worker.finish(tmp_path / "j.sqlite", examples(QUESTIONS), Deadly())
    failed = [row["failure"] for row in rows if "failure" in row]
    fields = [(row["id"], row["stage"], row["error"]) for row in failed]
    assert fields == [("e5", "combiner", CAUSE)]
    assert worker.deaths == {("combiner", 0, 5): TRIES}
    assert len(rows) == len(QUESTIONS)


def test_loading_is_logged_before_the_operation_continues() -> None:
    """A death while the model is loaded does not count against the first batch."""
    started: list[Phase] = []
    attempts = Attempts(record=started.append)
    attempts.begin("window", 7)
    with attempts.loading():
        started.append(("loaded",))
    assert started == [("window", 0, 7), ("load", 0), ("loaded",), ("window", 0, 7)]


def test_a_model_that_kills_workers_while_it_loads_ends_the_run() -> None:
    """After three deaths, with advice about memory; no read fails."""
    attempts = Attempts(deaths=Counter({("load", 0): 3}))
    with pytest.raises(UserError, match="while they loaded the model"), attempts.loading():
        pytest.fail("it is not loaded again")


def test_a_watched_process_tells_when_it_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its limit in a call, by a silence between calls; opening takes any time."""
    late_at = [0.0]
    monkeypatch.setattr(failures, "_late_at", None)
    monkeypatch.setattr(failures, "_GRACE", 2.0)
    failures.be_watched(late_at, 10)
    attempts = Attempts(record=lambda _: None)
    monkeypatch.setattr(failures, "monotonic", lambda: 1000.0)
    attempts.begin("select", 1)
    assert late_at == [1025]
    with failures.time_limit(32 * 10):
        assert late_at == [1642]
    assert late_at == [1025]
    attempts.begin("open")
    assert late_at == [0]
