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
from leporello.engine import failures, reading
from leporello.engine.failures import TRIES, Attempts, ExampleError, Phase
from leporello.engine.limits import AttemptLog, Limits
from leporello.engine.shard_rows import rows_of
from leporello.executors.channel import Channel

CAUSE = Attempts().cause
WINDOW: Phase = ("window", 0, 2, 0)


class DiedError(BaseException):
    """Simulates the death of a worker."""


def log_in(folder: Path, **options: Any) -> AttemptLog:
    defaults = {"driver": "first", "connected": lambda: None}
    return AttemptLog(folder / "stores" / "00000.attempts", **{**defaults, **options})


def died(folder: Path, *phases: Phase, **options: Any) -> Counter[Phase]:
    """Starts an attempt and any operations, and dies; returns the deaths that counted before."""
    log = log_in(folder, **options)
    log.open()
    for phase in phases:
        log.record(phase)
    log.close(finished=False)  # as at the end of the process
    return log.deaths


def test_a_death_counts_against_the_last_operation(tmp_path: Path) -> None:
    assert not died(tmp_path, ("select", 0, 1), WINDOW)
    assert died(tmp_path, WINDOW) == {WINDOW: 1}
    assert died(tmp_path, ("combine", 0, 3)) == {WINDOW: 2}
    log = log_in(tmp_path)
    log.open()
    assert (log.attempt, log.deaths) == (4, {WINDOW: 2, ("combine", 0, 3): 1})
    log.close(finished=True)
    assert not [*log.path.parent.iterdir()]
    assert not died(tmp_path)


def test_a_stage_that_closes_the_connection_is_blamed(tmp_path: Path) -> None:
    """The next operation is not started; otherwise it would be the last one."""
    socket_of_worker, socket_of_driver = socket.socketpair()
    log = log_in(tmp_path, connected=Channel(socket_of_worker).check)
    log.open()
    with socket_of_worker, socket_of_driver:
        log.record(WINDOW)
    with pytest.raises(EOFError):
        log.record(("combine", 0, 3))
    log.close(finished=False)
    assert died(tmp_path) == {WINDOW: 1}


def test_deaths_before_any_operation_or_under_another_driver_do_not_count(tmp_path: Path) -> None:
    """The run was killed from outside; earlier deaths still count."""
    died(tmp_path)
    assert not died(tmp_path)
    died(tmp_path, WINDOW)
    assert died(tmp_path, WINDOW) == {WINDOW: 1}
    assert died(tmp_path, driver="second") == {WINDOW: 1}
    died(tmp_path, WINDOW, driver="second")
    assert died(tmp_path, driver="second") == {WINDOW: 2}


def test_an_exceeded_deadline_counts_as_all_tries(tmp_path: Path) -> None:
    """It would be exceeded again, so the operation is not retried."""
    died(tmp_path, WINDOW)
    died(tmp_path, ("select", 0, 1))
    log = log_in(tmp_path)
    log.open(blame=TRIES)
    log.close(finished=False)
    assert log.deaths == {WINDOW: 1, ("select", 0, 1): TRIES}


def test_a_truncated_line_counts_as_not_started(tmp_path: Path) -> None:
    """It does not damage the lines after it."""
    died(tmp_path, ("select", 0, 1), WINDOW)
    path = log_in(tmp_path).path
    path.write_bytes(path.read_bytes()[:-3])
    assert died(tmp_path, WINDOW) == {("select", 0, 1): 1}
    assert died(tmp_path) == {("select", 0, 1): 1, WINDOW: 1}


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
    monkeypatch.setattr(reading, "read_error", raising_deaths(failures.read_error))

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
    alone = {("read", 0, number, 0): 1 for number in (5, 7)}  # one more death isolates each read
    assert worker.deaths == {("window", 0, 4, 0): TRIES, **alone}


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
    assert worker.deaths == {("combine", 0, 5): TRIES}
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
