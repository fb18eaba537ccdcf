"""What a worker dies over: what counts, and what is done then."""

from __future__ import annotations

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
from leporello.engine.attempts import AttemptLog
from leporello.engine.failures import TRIES, Attempts, ExampleError, Phase
from leporello.engine.limits import Limits
from leporello.engine.shard_rows import rows_of

CAUSE = Attempts().cause
WINDOW: Phase = ("window", 0, 2, 0)


class DiedError(BaseException):
    """Stands for the death of a worker."""


def log_in(folder: Path, **options: Any) -> AttemptLog:
    """Returns a log that another attempt would make."""
    return AttemptLog(folder / "stores" / "00000.attempts", **{"driver": "first", **options})


def died(folder: Path, *phases: Phase, **options: Any) -> Counter[Phase]:
    """Begins an attempt, begins all this, and dies; returns what had counted by then."""
    log = log_in(folder, **options)
    log.open()
    for phase in phases:
        log.record(phase)
    log.close(finished=False)  # no more than the end of the process does
    return log.deaths


def counted(folder: Path, **options: Any) -> dict[Phase, int]:
    """Returns what counts when the next attempt begins."""
    log = log_in(folder, **options)
    log.open()
    log.close(finished=False)
    return dict(log.deaths)


# -- what counts ---------------------------------------------------------------------------------


def test_what_was_begun_last_is_blamed(tmp_path: Path) -> None:
    """Each death once, over all attempts, whose numbers grow."""
    assert not died(tmp_path, ("select", 0, 1), WINDOW)
    assert died(tmp_path, WINDOW) == {WINDOW: 1}
    assert died(tmp_path, ("combine", 0, 3)) == {WINDOW: 2}
    log = log_in(tmp_path)
    log.open()
    assert (log.attempt, log.deaths) == (4, {WINDOW: 2, ("combine", 0, 3): 1})
    log.close(finished=True)
    assert not [*log.path.parent.iterdir()]
    assert not counted(tmp_path)


def test_a_worker_that_had_begun_nothing_blames_nothing(tmp_path: Path) -> None:
    """It may have died before."""
    died(tmp_path)
    assert not counted(tmp_path)


def test_deaths_under_another_driver_count_nothing(tmp_path: Path) -> None:
    """The run was killed from outside; what counted before still does."""
    died(tmp_path, WINDOW)
    assert died(tmp_path, WINDOW) == {WINDOW: 1}
    assert counted(tmp_path, driver="second") == {WINDOW: 1}
    died(tmp_path, WINDOW, driver="second")
    assert counted(tmp_path, driver="second") == {WINDOW: 2}


def test_a_deadline_that_was_enforced_counts_at_once(tmp_path: Path) -> None:
    """And is told as what it was; a file that is empty tells that none was."""
    died(tmp_path, WINDOW)
    log_in(tmp_path).deadline.write_text("")
    assert counted(tmp_path) == {WINDOW: 1}
    died(tmp_path, ("select", 0, 1))
    log = log_in(tmp_path)
    log.deadline.write_text("Timeout (0:00:10)!\n")
    log.open()
    log.close(finished=False)
    assert log.deaths == {WINDOW: 1, ("select", 0, 1): TRIES}
    assert log.is_overdue
    assert not log.deadline.exists()
    assert not log_in(tmp_path).is_overdue


def test_a_line_that_is_torn_is_as_if_it_had_not_been_begun(tmp_path: Path) -> None:
    """And spoils no line that comes after it."""
    died(tmp_path, ("select", 0, 1), WINDOW)
    path = log_in(tmp_path).path
    path.write_bytes(path.read_bytes()[:-3])
    assert died(tmp_path, WINDOW) == {("select", 0, 1): 1}
    assert counted(tmp_path) == {("select", 0, 1): 1, WINDOW: 1}


# -- what is done then ---------------------------------------------------------------------------


@dataclass
class Worker:
    """A process that reads, or dies over one question or another.

    Attributes:
        poison: Questions that it dies over.
        deaths: Number of its deaths.
        windows: Questions that it has answered, window by window.
    """

    poison: tuple[str, ...] = ()
    deaths: Counter[Phase] = field(default_factory=Counter)
    windows: list[list[str]] = field(default_factory=list)
    died: int = 0

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        questions = [read.question for read in inputs]
        if {*questions} & {*self.poison}:
            raise DiedError
        self.windows.append(questions)
        return [Output(f"{question} {len(inputs)}") for question in questions]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [0 for _ in texts]

    def finish(self, path: Path, asked: Sequence[Example], combiner: Any = None) -> list[Any]:
        """Returns the rows once the shard is finished, however often a worker dies over it."""
        stages = Pipeline(Words(), All(), self, combiner or Stuff())
        while True:
            begun: list[Phase] = []
            attempts = Attempts(0, self.deaths, begun.append)
            try:
                return rows_of(
                    path, asked, stages, Limits(max_active=8, window=4), attempts=attempts
                )
            except DiedError:
                self.died += 1
                self.deaths[begun[-1]] += 1


@pytest.fixture(autouse=True)
def no_catching(monkeypatch: pytest.MonkeyPatch) -> None:
    """A death cannot be caught, as whatever else a stage raises is."""

    def passing(of: Any) -> Any:
        def called(*given: Any) -> Any:
            if isinstance(given[-1], DiedError):
                raise given[-1]
            return of(*given)

        return called

    monkeypatch.setattr(ExampleError, "of", staticmethod(passing(ExampleError.of)))
    monkeypatch.setattr(reading, "read_error", passing(failures.read_error))

    def call(reader: Any, inputs: Sequence[Read]) -> list[Output]:
        return list(reader.read(inputs))

    monkeypatch.setattr("leporello.engine.reading.call_reader", call)


def examples(questions: Sequence[str]) -> list[Example]:
    """Returns one on a document each."""
    return [Example(f"e{n}", Document(f"d{n}", "w"), q) for n, q in enumerate(questions)]


QUESTIONS = [f"q{n}" for n in range(12)]


def test_of_a_window_that_kills_the_read_that_kills_alone_fails(tmp_path: Path) -> None:
    """After three deaths its reads are read one by one; windows before and after stay whole."""
    worker = Worker(poison=("q5",))
    rows = worker.finish(tmp_path / "j.sqlite", examples(QUESTIONS))
    failed = [row["failure"] for row in rows if "failure" in row]
    assert [(row["id"], row["stage"], row["error"]) for row in failed] == [("e5", "reader", CAUSE)]
    told = [row["prediction"]["prediction"] for row in rows if "prediction" in row]
    assert told == [
        "q0 4", "q1 4", "q2 4", "q3 4", "q4 1", "q6 1", "q7 1", "q8 4", "q9 4", "q10 4", "q11 4"
    ]  # fmt: skip
    assert worker.died == TRIES + 1
    assert worker.deaths == {("window", 0, 4, 0): TRIES, ("read", 0, 5, 0): 1}


def test_two_reads_of_a_window_may_kill(tmp_path: Path) -> None:
    """Each is found, with one more death."""
    worker = Worker(poison=("q5", "q7"))
    rows = worker.finish(tmp_path / "j.sqlite", examples(QUESTIONS))
    assert [row["failure"]["id"] for row in rows if "failure" in row] == ["e5", "e7"]
    assert worker.died == TRIES + 2


def test_a_worker_that_dies_twice_over_a_window_changes_nothing(tmp_path: Path) -> None:
    """The third time it is read as ever."""

    @dataclass
    class Twice(Worker):
        def read(self, inputs: Sequence[Read]) -> list[Output]:
            if self.died < TRIES - 1 and inputs[0].question == "q4":
                raise DiedError
            return super().read(inputs)

    asked = examples(QUESTIONS)
    worker = Twice()
    found = worker.finish(tmp_path / "j.sqlite", asked)
    assert worker.died == TRIES - 1
    assert found == Worker().finish(tmp_path / "whole.sqlite", asked)


@dataclass(frozen=True)
class Deadly:
    """Dies over a question, in its second round."""

    worker: Worker
    question: str = "q5"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        [first] = yield [Read((hits[0].chunk,), example.question)]
        if example.question == self.question:
            raise DiedError
        [second] = yield [Read((first.text,), example.question)]
        return f"{first.text} {second.text}"


def test_an_example_whose_combiner_kills_fails_alone(tmp_path: Path) -> None:
    """Whatever has been read for it already; the others are what they are without it."""
    worker = Worker()
    rows = worker.finish(tmp_path / "j.sqlite", examples(QUESTIONS), Deadly(worker))
    failed = [row["failure"] for row in rows if "failure" in row]
    assert [(row["id"], row["stage"], row["error"]) for row in failed] == [
        ("e5", "combiner", CAUSE)
    ]
    assert worker.deaths == {("combine", 0, 5): TRIES}
    assert len(rows) == len(QUESTIONS)


def test_loading_is_begun_on_the_way_and_what_loads_goes_on() -> None:
    """A death while the model is loaded is no fault of the window that needs it first."""
    begun: list[Phase] = []
    attempts = Attempts(record=begun.append)
    attempts.begin("window", 7)
    with attempts.loading():
        begun.append(("loaded",))
    assert begun == [("window", 0, 7), ("load", 0), ("loaded",), ("window", 0, 7)]


def test_a_model_that_kills_whoever_loads_it_ends_the_run() -> None:
    """After three deaths, with a word about memory; nothing that is read is blamed."""
    attempts = Attempts(deaths=Counter({("load", 0): 3}))
    with pytest.raises(UserError, match="while they loaded the model"), attempts.loading():
        pytest.fail("it is not loaded again")
