"""Readers in actors of Ray: the same answers as here, whatever becomes of an actor."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_models import STORY, save

from leporello.config.classes import find_class
from leporello.errors import UserError
from leporello.executors.beside import module_paths
from leporello.executors.on_ray import hands as on_ray
from leporello.executors.on_ray import room
from leporello.executors.on_ray.hands import NoRoomError, RayHands, cause_of
from leporello.executors.on_ray.kit import Kit
from leporello.executors.on_ray.parcel import Parcel
from leporello.executors.sending import dump
from leporello.records import Read
from readers import Seq2Seq
from readers.replicas import Replicas

ray = pytest.importorskip("ray")

KIT = Kit({}, module_paths(), Parcel({}, {}))
# One cluster at a time.
pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.usefixtures("one_thread")]
HALF = RayHands(gpus=0, cpus=0.5, kit=KIT)


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    """Starts a Ray of two cores, which tells nobody that it was used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        given: dict[str, Any] = {"num_cpus": 2, "num_gpus": 0, "object_store_memory": 80_000_000}
        ray.init(address="local", include_dashboard=False, log_to_driver=False, **given)
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Seq2Seq:
    """Returns a T5 reader in this process; its micro-batches are small, so that there are many."""
    folder = tmp_path_factory.mktemp("models") / "t5"
    save("t5", folder)
    return Seq2Seq(str(folder), max_new_tokens=8, batch_tokens=300, device="cpu")


@pytest.fixture(scope="module")
def two(alone: Seq2Seq) -> Iterator[Any]:
    """Returns the same reader in two actors, which end with these tests."""
    made: Any = replace(alone)
    made.replicate(2, HALF)
    yield made
    made._replicas.close()


def inputs() -> list[Read]:
    """Returns inputs of many lengths, some with choices."""
    texts = [STORY[: 10 + 9 * n] for n in range(12)]
    plain = [Read((text,), question="Who?") for text in texts]
    return [*plain, *(replace(read, choices=("cat", "mill")) for read in plain[:5])]


def seen(hand: Any) -> tuple[int, dict[str, str]]:
    """Returns the number of an actor's process, and its variables."""
    found: tuple[int, dict[str, str]]
    found = ray.get(hand._actor.__ray_call__.remote(lambda _: (os.getpid(), dict(os.environ))))
    return found


def test_actors_say_what_this_process_says(alone: Seq2Seq, two: Any) -> None:
    """To the last digit; each has one thread, and no GPU that it has not reserved."""
    assert two.read(inputs()) == alone.read(inputs())
    assert "_model" not in two.__dict__
    (first, variables), (second, _) = [seen(replica.hand) for replica in two._replicas._replicas]
    assert len({first, second, os.getpid()}) == 3
    assert (variables["OMP_NUM_THREADS"], variables["OMP_WAIT_POLICY"]) == ("1", "PASSIVE")
    assert variables["CUDA_VISIBLE_DEVICES"] == ""


def test_what_an_actor_is_killed_over_is_read_again(alone: Seq2Seq, two: Any) -> None:
    """By the other one, which does not wait for its replacement."""
    two.load()
    killed, other = two._replicas._replicas
    number, _ = seen(killed.hand)
    os.kill(number, signal.SIGSTOP)  # so that it is at something for as long as is needed
    killer = threading.Thread(target=kill_at_work, args=[killed, number])
    killer.start()
    found = two.read(inputs())
    killer.join()
    assert found == alone.read(inputs())
    assert killed not in two._replicas._replicas
    assert other in two._replicas._replicas
    assert len(two._replicas._replicas) == 2


def kill_at_work(replica: Any, number: int) -> None:
    """Kills a process once it is at a batch."""
    deadline = time.monotonic() + 240
    while not isinstance(replica.at, int) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(number, signal.SIGKILL)


def test_a_model_that_cannot_be_loaded_is_told_as_ever(alone: Seq2Seq, tmp_path: Path) -> None:
    """The actors' mistakes of the user's are the user's."""
    missing = replace(alone, model=str(tmp_path / "nowhere"))
    missing.replicate(1, HALF)
    with pytest.raises(UserError, match="nowhere"):
        missing.load()


def plug_in(name: str) -> Any:
    """Returns an object of a class that no import finds, only the name of its file."""
    file = Path(__file__).with_name("deadly.py")
    return find_class(f"{file}:{name}", "readers", Path())()


@pytest.fixture
def deadly() -> Any:
    """Returns a reader that ends its process at a certain prompt."""
    return plug_in("Deadly")


def test_a_batch_that_always_kills_is_given_up(deadly: Any) -> None:
    """After three actors; later batches are read, and what a reader raises is raised here."""
    replicas: Any = Replicas(deadly, 1, HALF)
    with pytest.raises(RuntimeError, match=r"was killed, or crashed .* each time"):
        replicas.answers([["a"], ["die"], ["b"]])
    assert replicas.answers([["a"], ["b"]]) == [["A"], ["B"]]
    assert replicas.budget() == 10
    with pytest.raises(UserError, match="told"):
        replicas.answers([["fail"]])
    replicas.close()


def test_an_actor_may_ask_other_actors() -> None:
    """As the one does that leads several readers."""
    lead = HALF.start(dump(plug_in("Lead")))
    lead.send(HALF)
    assert HALF.ready([lead]) == [lead]
    assert lead.receive() == ([["A"]], "told")
    lead.end()


@pytest.mark.parametrize(("gpus", "cpus", "told"), [(1, 1, "reader_gpus"), (0, 3, "reader_cpus")])
def test_what_no_node_has_is_refused(deadly: Any, gpus: float, cpus: float, told: str) -> None:
    """At once, with what to do."""
    with pytest.raises(UserError, match=f"no node of the Ray cluster has more .*{told}"):
        Replicas(deadly, 1, RayHands(gpus, cpus, KIT)).load()


def test_waiting_for_room_is_told(
    deadly: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once; then it is for others to make room, and nobody is left who waits."""
    monkeypatch.setattr(room, "PATIENCE", 0.0)
    caplog.set_level(logging.INFO, "leporello")
    taken = HALF.start(b"")
    while not taken.has_room():
        time.sleep(0.05)
    replicas = Replicas(deadly, 2, RayHands(gpus=0, cpus=2, kit=KIT))
    with pytest.raises(NoRoomError):
        replicas.load()
    assert not replicas._replicas
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert "2 of the processes" in said[0]
    assert "each reserves 0 GPU and 2 CPU" in said[0]
    taken.end()


def test_a_node_without_leporello_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what to do; trying again would not help."""

    class Elsewhere:
        def __init__(self, held: bytes, kit: Kit) -> None:
            raise ModuleNotFoundError("No module named 'leporello'")

        def answer(self, asked: bytes) -> bytes:
            return asked

    monkeypatch.setattr(on_ray, "_actor_class", lambda: ray.remote(Elsewhere))
    hand = HALF.start(b"")
    hand.send("load")
    with pytest.raises(UserError, match="No module named 'leporello'; every node needs"):
        hand.receive()


def test_gpus_are_shared_as_they_are_reserved() -> None:
    """What an actor measures of a GPU's memory is then divided among so many."""
    assert [RayHands(gpus, 1, KIT).sharing(4) for gpus in (0, 0.1, 0.25, 0.3, 0.5, 0.6, 1, 2)] == [
        *(1, 4, 4, 3, 2, 1, 1, 1)
    ]


NODE = "The actor died because its node has died. Node Id: 12ab"
EXIT = "worker process has died. Worker exit detail: Worker exits with an exit code 3."


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ray.exceptions.OutOfMemoryError("1 worker(s) were killed"), "its node ran low on memory"),
        (ray.exceptions.ActorUnavailableError("Socket closed", None), "no longer be reached"),
        (ray.exceptions.NodeDiedError("gone"), "no longer be reached"),
        (ray.exceptions.RayActorError(error_msg=NODE), "ended with its node"),
        (ray.exceptions.RayActorError(preempted=True), "ended with its node"),
        (ray.exceptions.RayActorError(error_msg=EXIT), "ended with status 3"),
        (ray.exceptions.ObjectStoreFullError("no room\nfor it"), r"gave no answer \(no room for"),
    ],
)
def test_how_an_actor_ended_is_told_in_words(error: Exception, told: str) -> None:
    """Ray's own messages are long, and name files of another machine."""
    with pytest.raises(RuntimeError, match=told):
        raise RuntimeError(f"the process that read it {cause_of(error)}")
