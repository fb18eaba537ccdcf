"""What the driver of a run on Ray does as actors answer, are lost, or find no room."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lamps import project

from leporello.errors import UserError
from leporello.executors.on_ray import calls as calls_module
from leporello.executors.on_ray.calls import Calls
from leporello.executors.on_ray.errands import Crewman, Piece, Staff
from leporello.executors.on_ray.reading import Reader
from leporello.executors.on_ray.wire import Begun, Crowded, Errand, Sheaf, unwrapped, wrapped
from leporello.jobs import prepare
from leporello.records import Document, Example

exceptions = pytest.importorskip("ray.exceptions")

LEFT = exceptions.ActorUnavailableError("the node is gone", None)
DIED = exceptions.RayError("worker process has died")


@dataclass
class Answer:
    """What stands where Ray would have a reference."""

    said: object

    def future(self) -> Future[object]:
        """Returns the answer, which is there."""
        future: Future[object] = Future()
        if isinstance(self.said, Exception):
            future.set_exception(self.said)
        else:
            future.set_result(self.said)
        return future


@dataclass
class Method:
    """What an actor says when it is called, time after time; then always the last."""

    answers: deque[object]

    def remote(self, *_: object) -> Answer:
        """Returns the next answer."""
        return Answer(self.answers.popleft() if len(self.answers) > 1 else self.answers[0])


@dataclass
class Actor:
    """An actor that says what it is told to."""

    begin: Method = field(default_factory=lambda: Method(deque([[Begun((), 0.0)]])))
    prepare: Method = field(default_factory=lambda: Method(deque([None])))
    arrive: Method = field(default_factory=lambda: Method(deque([None])))


def calls() -> Calls:
    """Returns calls that nothing happens beside."""
    return Calls(lambda: None)


def done_after(answers: Sequence[object]) -> tuple[list[Sequence[Errand]], list[str]]:
    """Gives a piece of one example to a worker; returns what was done, and what was given up.

    Args:
        answers: Of one worker after the other.
    """
    done: list[Sequence[Errand]] = []
    given_up: list[str] = []
    awaited, left = calls(), deque(answers)

    def then(_: Crewman, piece: Piece, __: object) -> None:
        done.append(piece.errands)

    def hire() -> Any:
        return Actor(begin=Method(deque([left.popleft() if left else DIED])))

    def give_up(_: Crewman, piece: Piece) -> None:
        given_up.append(piece.errands[0].fault)

    staff = Staff(awaited, hire, 1, None, give_up)
    staff.fill()
    errand = Errand(0, 0, (7,), {7: ()})
    block: Any = None
    staff.hand_out([Piece(block, [errand], then)])
    awaited.until(lambda: bool(done or given_up))
    return done, given_up


def test_nodes_that_leave_are_not_held_against_an_example() -> None:
    """However often, within reason: it is answered when a worker lives long enough."""
    done, given_up = done_after([LEFT] * 6 + [[Begun((), 0.0)]])
    assert [errand.fault for errand in done[0]] == [""]
    assert not given_up


def test_an_example_that_kills_three_workers_fails() -> None:
    """Nodes that left meanwhile do not count; a fourth worker only says so."""
    done, _ = done_after([DIED, LEFT, DIED, LEFT, DIED, [Begun((), 0.0)]])
    assert "its process was killed" in done[0][0].fault


def test_what_kills_a_worker_by_being_opened_is_given_up() -> None:
    """Nobody needs to have it open who is to write that it failed."""
    done, [told] = done_after([DIED, DIED, DIED, DIED])
    assert not done
    assert "its process was killed" in told


def test_who_is_always_unreachable_is_no_chance() -> None:
    """At some time it counts as a death, so that a run ends."""
    done, given_up = done_after([LEFT] * 30)
    assert not done
    assert given_up


def test_readers_without_room_are_told_of_and_asked_again() -> None:
    """Workers make room each time, and none is hired meanwhile."""
    awaited = calls()
    actor = Actor(prepare=Method(deque([Crowded(), Crowded(), None])))
    reader = Reader(awaited, lambda: actor, {}, {})
    wanted: list[bool] = []

    def look() -> bool:
        wanted.append(reader.finds_no_room() and reader.crowded)
        return reader.ready

    awaited.until(look)
    assert any(wanted)
    assert (reader.crowded, reader.finds_no_room()) == (False, False)


def test_a_wish_to_stop_is_seen_while_there_is_always_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock decides when to look about, not whether anything is awaited."""
    monkeypatch.setattr(calls_module, "_LOOK", 0.0)
    seen: list[int] = []
    awaited = Calls(lambda: seen.append(1))
    awaited.until(lambda: True)
    awaited.until(lambda: True)
    assert len(seen) == 2


def test_an_example_that_cannot_be_sent_has_a_fault() -> None:
    """The others on its document go as they are; what cannot be opened is told without a trace."""
    document = Document("d", "Rain.")
    sound = Example("a", document, "Why?", metadata={"n": 1})
    lock: Any = threading.Lock()
    locked = Example("b", document, "Who?", metadata={"lock": lock})
    sheaf = unwrapped([wrapped(Sheaf(4, (sound, locked)))], 0)
    assert [example.id for example in sheaf.examples] == ["a", "b"]
    assert sheaf.examples[0].metadata == {"n": 1}
    assert "cannot be sent to another process (cannot pickle" in sheaf.examples[1].fault
    assert sheaf.examples[0].document is sheaf.examples[1].document
    with pytest.raises(UserError, match=r"cannot be opened in another process; .* picklable"):
        unwrapped([b"no pickle"], 0)


def test_set_may_name_what_ray_alone_knows_beside_the_flag(tmp_path: Path) -> None:
    """`--executor ray --set placement.reader_cpus=2`; without the flag it is refused."""
    config = project(tmp_path, examples=2, seconds=0.0)
    given: dict[str, Any] = {"config": [config], "overrides": ["placement.reader_cpus=2"]}
    [job] = prepare(["mine"], **given, placement={"executor": "ray"})
    assert (job.placement.executor, job.placement.reader_cpus) == ("ray", 2)
    with pytest.raises(UserError, match=r"reader_cpus: is Ray's alone"):
        prepare(["mine"], **given)
