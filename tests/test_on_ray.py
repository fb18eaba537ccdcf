"""The same run on a Ray cluster of several nodes: the same bytes, whatever is lost meanwhile."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import command, leporello, read_lines
from lamps import journal, project, same_bytes
from tiny_models import save

from leporello.api import Run, UserError, run
from leporello.engine import Limits
from leporello.executors.on_ray import cluster as cluster_module
from leporello.executors.on_ray import reading, site
from leporello.executors.on_ray.cluster import Share, share
from leporello.executors.on_ray.ingest import ranges
from leporello.executors.sending import pack, unpack
from leporello.placement import Placement
from leporello.records import Document, Read

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

# Tells where it works, and has accidents where it is told to.
RETRIEVER = """
import os, ray, signal, time
from dataclasses import dataclass
from pathlib import Path
from retrievers import BM25

@dataclass(frozen=True)
class Prone:
    log: str
    seconds: float = 0.0
    deadly: str = "-"
    hanging: str = "-"
    leaving: str = ""
    k: int = 3

    def retrieve(self, questions, chunks):
        with open(self.log, "a") as file:
            node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else "-"
            file.write(f"{os.getpid()} {node}\\n")
        if self.leaving and Path(self.leaving).exists():
            self.leave(node, Path(self.leaving).read_text())
        time.sleep(self.seconds)
        for question in questions:
            if question == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            if question == self.hanging:
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
                time.sleep(600)
        return BM25(k=self.k).retrieve(questions, chunks)

    def leave(self, here, leaving):
        # Whoever is on the node that leaves is at work when it does; the others wait for that.
        if here == leaving:
            time.sleep(600)
        until = time.monotonic() + 300
        while leaving not in Path(self.log).read_text() and time.monotonic() < until:
            time.sleep(0.01)
"""


pytestmark = pytest.mark.xdist_group("ray")  # one cluster at a time


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Starts a cluster of two nodes on this machine, and connects to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        node = {"num_cpus": 2, "object_store_memory": 80_000_000, "include_dashboard": False}
        made = cluster_utils.Cluster(initialize_head=True, head_node_args=node)
        made.add_node(num_cpus=2, object_store_memory=80_000_000)
        made.wait_for_nodes(timeout=180)
        ray.init(address=made.address, log_to_driver=False, logging_level=logging.ERROR)
        yield made
        ray.shutdown()
        made.shutdown()


class Lamps:
    """A project, and its runs."""

    def __init__(self, cluster: Any, folder: Path) -> None:
        self.cluster = cluster
        self.folder, self.log = folder, folder / "places.txt"
        self.config = project(folder, examples=160, seconds=0.0)
        (folder / "prone.py").write_text(RETRIEVER)

    def run(self, out: str, *overrides: str, **options: Any) -> Run:
        """Runs it, without the cache."""
        return run(
            ["mine"],
            config=[self.config],
            out=self.folder / out,
            overrides=overrides,
            cached=False,
            **options,
        )

    def prone(self, **parameters: Any) -> list[str]:
        """Returns what has the retriever above in the pipeline."""
        given = {"class": f"{self.folder}/prone.py:Prone", "log": self.log, **parameters}
        return [f"retriever.{name}={value}" for name, value in given.items()]

    def same(self, one: str, other: str) -> None:
        """Holds two runs against each other, their journals too."""
        same_bytes(self.folder / one, self.folder / other)
        journals = [journal(self.folder / name).read_bytes() for name in (one, other)]
        assert journals[0] == journals[1]

    def when_begun(self, out: str, act: Callable[[], None]) -> threading.Thread:
        """Does something once the journal of a run has grown."""

        def wait() -> None:
            path = journal(self.folder / out)
            for _ in range(6000):
                if path.exists() and path.stat().st_size > 20_000:
                    act()
                    return
                time.sleep(0.01)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread

    def processes(self) -> list[int]:
        """Returns the processes that selected."""
        return [int(line.split()[0]) for line in self.log.read_text().splitlines()]


@pytest.fixture
def lamps(cluster: Any, tmp_path: Path) -> Lamps:
    """Returns a project of its own."""
    return Lamps(cluster, tmp_path)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_run_on_ray_leaves_the_same_bytes(lamps: Lamps, workers: int) -> None:
    """Several rounds, searches, failing reads, a plug-in: files and journal are the local run's."""
    lamps.run("local")
    done = lamps.run("ray", executor="ray", workers=workers)
    assert 0 < done.failures < 160
    lamps.same("ray", "local")


@pytest.mark.slow
def test_documents_are_spread_over_the_nodes(lamps: Lamps) -> None:
    """Every worker selects, and not in the driver's process; what `auto` workers are left with."""
    lamps.run("ray", *lamps.prone(seconds=0.05), executor="ray", workers="auto")
    assert len({*lamps.processes()}) == 3  # of four cores one reads
    assert os.getpid() not in lamps.processes()
    nodes = {line.split()[1] for line in lamps.log.read_text().splitlines()}
    assert len(nodes) == 2


def test_a_run_begun_here_is_finished_on_ray_and_the_other_way_round(lamps: Lamps) -> None:
    """What the journal holds is not read again."""
    lamps.run("local")
    for first, then in (("local", "ray"), ("ray", "local")):
        out = f"{first}-{then}"
        lamps.run(out, executor=first, limit=70)
        kept = journal(lamps.folder / out).read_bytes()
        whole = journal(lamps.folder / "local").read_bytes()
        lines = kept.splitlines(keepends=True)
        # As if it had been killed in the middle of a window, in the whole run.
        cut = b"".join(line for line in whole.splitlines(keepends=True)[: len(lines) // 2])
        journal(lamps.folder / out).write_bytes(cut)
        lamps.run(out, executor=then, update=False)
        lamps.same(out, "local")


@pytest.mark.slow
def test_several_pipelines_on_ray_share_the_reader(lamps: Lamps) -> None:
    """The points of a sweep leave the same bytes as here."""
    for name, executor in (("local", "local"), ("ray", "ray")):
        lamps.run(name, "retriever.k=2,3", executor=executor, limit=40)
    files = sorted(lamps.folder.glob("local/mine@*/lamps/calls.jsonl"))
    assert len(files) == 2
    for path in files:
        other = lamps.folder / "ray" / path.relative_to(lamps.folder / "local")
        assert other.read_bytes() == path.read_bytes()


def test_a_node_that_leaves_costs_only_its_documents(
    lamps: Lamps, caplog: pytest.LogCaptureFixture
) -> None:
    """The run goes on with what is left of the cluster, to the same bytes."""
    # More blocks than the others are given before the last worker is there.
    project(lamps.folder, examples=160, seconds=0.0, documents=80)
    leaving = lamps.folder / "leaving.txt"
    prone = lamps.prone(leaving=leaving)
    lamps.run("local", *prone)
    usual = len(lamps.processes())
    lamps.log.unlink()
    node = lamps.cluster.add_node(num_cpus=2, object_store_memory=80_000_000)
    lamps.cluster.wait_for_nodes(timeout=180)
    leaving.write_text(node.node_id)

    def leave() -> None:
        until = time.monotonic() + 300
        while node.node_id not in lamps.log.read_text() and time.monotonic() < until:
            time.sleep(0.01)
        lamps.cluster.remove_node(node, allow_graceful=False)

    lamps.log.touch()
    thread = threading.Thread(target=leave, daemon=True)
    thread.start()
    lamps.run("ray", *prone, executor="ray", workers=5)  # with who reads, all that has room
    thread.join()
    lamps.same("ray", "local")
    assert re.search(r"a process that selects .*\bits node\b.*; it is replaced", caplog.text)
    assert len(lamps.processes()) < 1.5 * usual


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(
    lamps: Lamps, caplog: pytest.LogCaptureFixture
) -> None:
    """SIGKILL in the middle: what it held is taken up by others, to the same bytes."""
    prone = lamps.prone(seconds=0.05)
    lamps.run("local", *prone)
    lamps.log.unlink()
    thread = lamps.when_begun("ray", lambda: os.kill(lamps.processes()[0], signal.SIGKILL))
    lamps.run("ray", *prone, executor="ray", workers=2)
    thread.join()
    assert "a process that selects was killed" in caplog.text
    lamps.same("ray", "local")


@pytest.mark.slow
def test_the_reader_that_is_killed_is_replaced(
    lamps: Lamps, caplog: pytest.LogCaptureFixture
) -> None:
    """Its window is read again whole, so that the answers stay what they were."""
    fatal = (lamps.folder / "plug.py").read_text().replace(
        "        time.sleep(self.seconds)\n",
        "        import os, signal\n"
        "        from pathlib import Path\n"
        f"        once = Path({str(lamps.folder / 'once')!r})\n"
        "        if any('lamp 30' in read.question for read in inputs) and not once.exists():\n"
        "            once.touch()\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n",
    )  # fmt: skip
    (lamps.folder / "plug.py").write_text(fatal)
    lamps.run("ray", executor="ray", workers=2)
    assert "the process that reads " in caplog.text
    lamps.run("local")
    lamps.same("ray", "local")


# A task one of whose documents no process can take in: not once it is on its way, that is.
TASK = """
import os, threading
from dataclasses import dataclass, replace
from pathlib import Path
from leporello.tasks import JsonLines

class Heavy:
    def __reduce__(self):
        return os._exit, (9,)

@dataclass(frozen=True)
class Weighty(JsonLines):
    def examples(self):
        for example in super().examples():
            if example.document.id == "d7":
                document = replace(example.document, text="lamp " * 70_000)
                example = replace(example, document=document, metadata={"heavy": Heavy()})
            if example.id == "q3":
                example = replace(example, metadata={"lock": threading.Lock()})
            yield example
"""


@pytest.mark.slow
def test_what_cannot_be_sent_or_opened_fails_alone(lamps: Lamps) -> None:
    """The questions on such a document fail, and such a question; all others are answered."""
    (lamps.folder / "weighty.py").write_text(TASK)
    config = lamps.config.read_text()
    lamps.config.write_text(config.replace("class: JsonLines", "class: ./weighty.py:Weighty"))
    done = lamps.run("ray", executor="ray", workers=2, limit=48)
    failed = [f for f in done.failed("mine", "lamps") if f.stage == "retriever"]
    assert [failure.example_id for failure in failed] == ["q7", "q47", "q87", "q127"]
    assert all(re.search("its process .* each time", f.error) for f in failed)
    assert done.failures + len([*done.predictions("mine", "lamps")]) == 48
    [locked] = [f for f in done.failed("mine", "lamps") if f.stage == "task"]
    assert (locked.example_id, "cannot pickle" in locked.error) == ("q3", True)
    # What failed is tried again, and fails again.
    assert lamps.run("ray", executor="ray", workers=2, limit=48).failures == done.failures


def test_a_question_that_kills_three_workers_fails_alone(lamps: Lamps) -> None:
    """All other questions on its document, too, are answered as without it."""
    lamps.run("local")
    done = lamps.run("ray", *lamps.prone(deadly="lamp 17?"), executor="ray", workers=2)
    failed = [f for f in done.failed("mine", "lamps") if "its process" in f.error]
    assert {failure.example_id for failure in failed} == {"q17", "q114"}
    assert all(f.stage == "retriever" and "each time" in f.error for f in failed)
    assert len({*lamps.processes()}) >= 3


@pytest.mark.slow
def test_a_read_that_kills_its_process_fails_alone(
    lamps: Lamps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window is read in ever smaller parts until the guilty read is alone."""
    monkeypatch.setattr(reading, "_TRIES", 1)  # of the whole window: this test is to be quick
    fatal = (lamps.folder / "plug.py").read_text().replace(
        'raise RuntimeError("cannot read this")', "__import__('os')._exit(7)"
    )  # fmt: skip
    (lamps.folder / "plug.py").write_text(fatal.replace("11?", "lamp 111?"))
    rows = (lamps.folder / "lamps.jsonl").read_text().replace("lamp 1?", "lamp 111?")
    (lamps.folder / "lamps.jsonl").write_text(rows)
    done = lamps.run("ray", "combiner.class=ReadEach", executor="ray", limit=8)
    assert [failure.stage for failure in done.failed("mine", "lamps")] == ["reader"]
    assert len([*done.predictions("mine", "lamps")]) == 7


@pytest.mark.slow
def test_what_hangs_beyond_its_time_out_is_killed(
    lamps: Lamps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the process does not end it itself, the driver does."""
    from leporello.executors.on_ray import errands

    monkeypatch.setattr(errands, "_GRACE", 1.0)
    limits = Limits(example_timeout=0.5)
    prone = lamps.prone(hanging="lamp 3?")
    done = lamps.run("ray", *prone, executor="ray", workers=2, limit=20, limits=limits)
    [failure] = [f for f in done.failed("mine", "lamps") if f.example_id == "q3"]
    assert "took longer than 0.5 s" in failure.error


def test_a_mistake_of_the_users_ends_the_run_with_its_message(lamps: Lamps) -> None:
    """Data that cannot be read, or a model that cannot be loaded, is told as it is here."""
    told = []
    for executor in ("local", "ray"):
        with pytest.raises(UserError) as error:
            lamps.run(executor, "reader.class=Seq2Seq", "reader.model=./none", executor=executor)
        told.append(str(error.value))
    assert told[0] == told[1]


@pytest.mark.slow
def test_failures_are_tried_again_on_ray(lamps: Lamps) -> None:
    """The same command tries once more what failed."""
    first = lamps.run("ray", executor="ray", limit=60)
    assert first.failures
    lines = len(read_lines(journal(lamps.folder / "ray")))
    lamps.run("ray", executor="ray", limit=60)
    rows = read_lines(journal(lamps.folder / "ray"))
    assert "retry" in rows[lines]


def test_a_reader_that_cannot_read_in_several_actors_is_refused(lamps: Lamps) -> None:
    """With the setting to leave out."""
    with pytest.raises(UserError, match="leave out reader_replicas"):
        lamps.run("ray", executor="ray", reader_replicas=2)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_readers_in_several_actors_read_what_one_reads(lamps: Lamps, tmp_path: Path) -> None:
    """A model in two actors says what it says in one, and here, journal included."""
    save("t5", tmp_path / "t5")
    model = ["reader.class=Seq2Seq", f"reader.model={tmp_path / 't5'}", "reader.max_new_tokens=6"]
    model += ["reader.batch_tokens=400", "combiner.class=ReadEach"]
    lamps.run("one", *model, executor="ray", limit=24)
    lamps.run("two", *model, executor="ray", limit=24, reader_replicas=2)
    lamps.same("two", "one")
    lamps.run("here", *model, limit=24)
    lamps.same("here", "one")


@pytest.mark.slow
def test_who_reads_the_data_may_die(lamps: Lamps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another goes on behind what has come."""
    lamps.run("local")
    hired = []
    start = cluster_module.Actors.ingest

    def hire(self: Any) -> Any:
        hired.append(start(self))
        return hired[-1]

    monkeypatch.setattr(cluster_module.Actors, "ingest", hire)
    thread = lamps.when_begun("ray", lambda: ray.kill(hired[0]))
    monkeypatch.setattr(site, "_DOCUMENTS_AHEAD", 1)
    monkeypatch.setattr(cluster_module.Actors, "at_once", 1)
    monkeypatch.setattr(site, "_DOCUMENTS_PER_WORKER", 1)
    lamps.run("ray", executor="ray")
    thread.join()
    assert len(hired) == 2
    lamps.same("ray", "local")


@pytest.mark.slow
def test_the_command_line_takes_a_cluster_and_sends_its_own_code(lamps: Lamps) -> None:
    """From another folder, by an address: the same bytes, tracebacks of failures included."""
    arguments = ("run", "mine", "--config", lamps.config, "--no-cache", "--limit", "60")
    leporello(*arguments, "--out", lamps.folder / "local", status=1)
    placed = ("--executor", "ray", "--address", lamps.cluster.address, "--workers", "2")
    leporello(*arguments, "--out", lamps.folder / "ray", *placed, status=1, folder=lamps.folder)
    lamps.same("ray", "local")


@pytest.mark.slow
def test_where_there_is_no_cluster_the_user_is_told(lamps: Lamps) -> None:
    """And nothing is lost."""
    arguments = ("run", "mine", "--config", lamps.config, "--executor", "ray")
    done = leporello(*arguments, "--address", "127.0.0.1:1", "--out", lamps.folder / "x", status=2)
    assert "Ray at 127.0.0.1:1 cannot be had" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_on_a_ray_of_its_own_is_ended_and_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C ends it after what is being read; killed or not, no actor is left, nothing lost."""
    config = project(tmp_path, examples=160, seconds=0.05)
    arguments = ("run", "mine", "--config", config, "--no-cache", "--out")
    leporello(*arguments, tmp_path / "local", status=1)
    line = command(*arguments, tmp_path / "ray", "--executor", "ray", "--workers", "2")
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    while not journal(tmp_path / "ray").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    _, told = process.communicate(timeout=180)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or "ended early: interrupted; the same command" in told
    leporello(*arguments, tmp_path / "ray", "--executor", "ray", status=1)
    same_bytes(tmp_path / "ray", tmp_path / "local")


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (Placement("ray"), Share(1, 1, 0)),
        (Placement("ray", workers="auto", worker_gpus=0.5), Share(4, 1, 0)),
        (
            Placement("ray", workers="auto", reader_replicas="auto", worker_gpus=0.5),
            Share(2, 1, 1),
        ),
        (Placement("ray", workers="auto"), Share(7, 1, 0)),
        (Placement("ray", workers="auto", reader_replicas=2), Share(5, 2, 0)),
        (Placement("ray", workers="auto", reader_replicas="auto"), Share(5, 2, 1)),
        (Placement("ray", workers=3, reader_replicas="auto", reader_gpus=0.5), Share(3, 4, 0.5)),
        (Placement("ray", workers="auto", worker_cpus=0.5), Share(14, 1, 0)),
        (Placement("ray", workers="auto", worker_cpus=16), Share(1, 1, 0)),
    ],
)
def test_auto_takes_what_the_cluster_has(placement: Placement, expected: Share) -> None:
    """Of eight cores and two GPUs; workers are what readers leave."""
    assert share(placement, cpus=8, gpus=2) == expected


def test_without_gpus_half_of_the_cores_read() -> None:
    """One of them leads the others."""
    found = share(Placement("ray", workers="auto", reader_replicas="auto"), cpus=8, gpus=0)
    assert found == Share(3, 4, 0)


def test_numbers_come_as_ranges() -> None:
    """Finished examples are told to the actor that reads the data in few words."""
    assert ranges([0, 1, 2, 5, 7, 8]) == [range(3), range(5, 6), range(7, 9)]


def test_reads_travel_without_their_document() -> None:
    """The document is put in again where it is."""
    document = Document("d", "lamp " * 10_000)
    reads = [Read((document.chunk(0, 4), "an answer"), "who?"), Read(("x",), title="t")]
    packed = pack(reads)
    assert len(packed) < 1000
    again = Document("d", document.text)
    assert unpack(packed, again) == [Read((again.chunk(0, 4), "an answer"), "who?"), reads[1]]
