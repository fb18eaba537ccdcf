"""Runs on a Ray cluster of several nodes: the same bytes as locally, also after losses."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import command, leporello, read_lines
from lamps import project, same_bytes

from leporello.api import Run, UserError, run
from leporello.config.placement import Placement
from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.engine.database import finished_in
from leporello.engine.limits import Limits
from leporello.engine.results.finished import FinishedRow
from leporello.executors.channel import dump, load
from leporello.executors.interface import JobGroupSpec
from leporello.executors.ray.cluster import resolved
from leporello.executors.ray.workers import (
    RayWorkers,
    ShardActor,
    WorkerEnvironment,
    travelling_modules,
)
from leporello.jobs.directory import RunDirectory
from leporello.jobs.jobs import prepare
from leporello.jobs.options import JobOptions

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

# Logs its process and node, and dies or hangs on demand.
RETRIEVER = """
import os, signal, time
from dataclasses import dataclass
from pathlib import Path
from leporello.retrievers import BM25

@dataclass(frozen=True)
class Prone:
    log: str
    deadly: str = "-"
    leaving: str = ""
    k: int = 3

    def retrieve(self, questions, chunks):
        node = os.environ.get("RAY_RAYLET_PID", "-")
        with open(self.log, "a") as file:
            file.write(f"{os.getpid()} {node}\\n")
        if self.leaving and node == Path(self.leaving).read_text():
            time.sleep(600)
        for question in questions:
            if question == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
        return BM25(k=self.k).retrieve(questions, chunks)
"""
SHORT = Limits(shard_examples=32)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        # Ray kills workers when other processes of the machine take its memory.
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        node = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
        nodes = cluster_utils.Cluster(initialize_head=True, head_node_args=node)
        nodes.add_node(num_cpus=1, object_store_memory=80_000_000)
        nodes.wait_for_nodes(timeout=180)
        ray.init(address=nodes.address, log_to_driver=False, logging_level=logging.ERROR)
        yield nodes
        ray.shutdown()
        nodes.shutdown()


class Lamps:
    """A project and its runs."""

    def __init__(self, cluster: Any, folder: Path) -> None:
        self.cluster = cluster
        self.folder, self.log = folder, folder / "places.txt"
        self.config = project(folder, examples=160)
        (folder / "prone.py").write_text(RETRIEVER)

    def run(self, out: str, *overrides: str, limits: Limits = SHORT, **options: Any) -> Run:
        return run(
            ["mine"],
            config=[self.config],
            out=self.folder / out,
            overrides=overrides,
            cached=False,
            limits=limits,
            **options,
        )

    def prone(self, **parameters: Any) -> list[str]:
        retriever = {"class": f"{self.folder}/prone.py:Prone", "log": self.log, **parameters}
        return [f"retriever.{name}={value}" for name, value in retriever.items()]

    def same(self, run: str, expected: str) -> None:
        same_bytes(self.folder / run, self.folder / expected)
        assert self.rows(run) == self.rows(expected)

    def rows(self, out: str) -> list[FinishedRow]:
        stores = sorted((self.folder / out / "journal").rglob("*.sqlite"))
        return [row for store in stores for row in finished_in(store)]

    def attempts(self, out: str) -> list[tuple[int, str]]:
        """Returns the attempts in workers.jsonl of a run, with their outcomes."""
        rows = read_lines(self.folder / out / "workers.jsonl")
        return sorted((row["attempt"], row["outcome"]) for row in rows)


@pytest.fixture
def lamps(cluster: Any, tmp_path: Path) -> Lamps:
    return Lamps(cluster, tmp_path)


@pytest.mark.slow
def test_a_run_on_ray_leaves_the_same_bytes(lamps: Lamps) -> None:
    """Several rounds, searches, failing reads, plug-ins by file, workers with selectors."""
    lamps.run("local")
    result = lamps.run("ray", executor="ray", workers=2, selectors=1)
    assert 0 < result.failures < 160
    lamps.same("ray", "local")
    assert lamps.attempts("ray") == [(1, "finished")] * 5
    assert not [*(lamps.folder / "ray").glob(".ray-*")]


def test_a_worker_that_is_killed_is_replaced_and_poison_is_found(lamps: Lamps) -> None:
    """After four workers one example fails, as it does locally; the shard is finished."""
    # The first 64 examples are those on the first 16 documents, four on each.
    deadly = lamps.prone(deadly="lamp 9?")
    result = lamps.run("ray", *deadly, executor="ray", workers=2, limit=64)
    assert (5, "finished") in lamps.attempts("ray")
    poisoned = [f for f in result.failed("mine", "lamps") if f.stage == "retriever"]
    assert [failure.example_id for failure in poisoned] == ["q9"]
    assert all("its process was killed by signal 9" in f.error for f in poisoned)
    assert len([*result.predictions("mine", "lamps")]) + result.failures == 64
    lamps.run("local", *deadly, limit=64, workers=1)
    lamps.same("ray", "local")


@pytest.mark.slow
def test_a_cluster_of_dying_workers_ends_it(lamps: Lamps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RayWorkers, "tries", 3)
    with (lamps.folder / "prone.py").open("a") as file:
        file.write("import sys\nif sys.argv[0] == '-c':\n    os._exit(3)\n")  # except in the driver
    with pytest.raises(UserError, match=r"ended with status 3 before .*3 times; .*`ray status`"):
        lamps.run("ray", *lamps.prone(), executor="ray", workers=1, limit=8)


@pytest.mark.slow
def test_a_lost_node_costs_only_its_shards(lamps: Lamps) -> None:
    """The run continues on the other nodes; the loss does not count as a death."""
    leaving = lamps.folder / "leaving.txt"
    leaving.write_text("nowhere")
    prone = lamps.prone(leaving=leaving)
    lamps.run("local", *prone)
    node = lamps.cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    lamps.cluster.wait_for_nodes(timeout=180)
    raylet = str(node.all_processes["raylet"][0].process.pid)
    leaving.write_text(raylet)
    lamps.log.unlink()
    lamps.log.touch()

    def leave() -> None:
        until = time.monotonic() + 300
        while f" {raylet}\n" not in lamps.log.read_text() and time.monotonic() < until:
            time.sleep(0.05)
        lamps.cluster.remove_node(node, allow_graceful=False)

    thread = threading.Thread(target=leave, daemon=True)
    thread.start()
    lamps.run("ray", *prone, executor="ray", workers=3)
    thread.join()
    lamps.same("ray", "local")
    assert (2, "finished") in lamps.attempts("ray")


def test_a_user_error_ends_the_run_with_its_message(lamps: Lamps) -> None:
    """A missing model is reported as locally, missing capacity before any work."""
    messages = []
    for executor in ("local", "ray"):
        with pytest.raises(UserError) as error:
            lamps.run(executor, "reader.class=Seq2Seq", "reader.model=./none", executor=executor)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    for demand, name in (("worker_gpus=2", "2 GPU"), ("worker_cpus=999", "999 CPU")):
        with pytest.raises(UserError, match=f"each worker must reserve .*{name}.*no node of the"):
            lamps.run("none", f"placement.{demand}", executor="ray")


@pytest.mark.slow
def test_the_command_line_takes_a_cluster_and_sends_its_own_code(lamps: Lamps) -> None:
    """From another folder, with an address: the same bytes, also in tracebacks."""
    arguments = ("run", "mine", "--config", lamps.config, "--no-cache", "--limit", "60")
    leporello(*arguments, "--out", lamps.folder / "local", status=1)
    flags = ("--executor", "ray", "--address", lamps.cluster.address, "--workers", "2")
    leporello(*arguments, "--out", lamps.folder / "ray", *flags, status=1, folder=lamps.folder)
    lamps.same("ray", "local")


@pytest.mark.slow
def test_a_missing_cluster_is_reported(tmp_path: Path) -> None:
    arguments = ("run", "mine", "--config", project(tmp_path, examples=8), "--executor", "ray")
    line = command(*arguments, "--address", "127.0.0.1:1", "--out", tmp_path / "x")
    process = subprocess.run(line, capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert "Ray at 127.0.0.1:1 is not available" in process.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_on_ray_is_resumed(tmp_path: Path, number: signal.Signals) -> None:
    config = project(tmp_path, examples=160)
    arguments = ("run", "mine", "--config", config, "--no-cache", "--shard-examples", "32", "--out")
    leporello(*arguments, tmp_path / "local", status=1)
    line = command(*arguments, tmp_path / "ray", "--executor", "ray", "--workers", "2")
    process = subprocess.Popen(
        line, stderr=subprocess.PIPE, text=True, env=os.environ | {"LAMP_SECONDS": "0.05"}
    )
    while not [*tmp_path.glob("ray/journal/**/*.sqlite")] and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert number == signal.SIGKILL or "ended early: interrupted; run the same command" in errors
    leporello(*arguments, tmp_path / "ray", status=1)
    same_bytes(tmp_path / "ray", tmp_path / "local")


@pytest.mark.slow
def test_ray_that_a_run_started_listens_only_on_this_machine() -> None:
    text = """
import psutil
from leporello.config.placement import Placement
from leporello.executors.ray.cluster import _connect
_connect(Placement(executor="ray", workers=1), [])
processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
listening = [c.laddr.ip for p in processes for c in p.net_connections() if c.status == "LISTEN"]
print(len(listening) > 3 and {ip.removeprefix("::ffff:") for ip in listening})
"""
    line = [sys.executable, "-c", text]
    process = subprocess.run(line, check=True, capture_output=True, text=True)
    assert process.stdout.splitlines()[-1] == "{'127.0.0.1'}"


def test_plug_in_files_are_sent_to_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plug-in's file, its imports and its declared files, and no other file beside the YAML."""
    project(tmp_path, examples=4)
    monkeypatch.setenv("COLOUR", "red")
    text = (tmp_path / "plug.py").read_text()
    declared = text.replace("...]] = ()", '...]] = ("words", "env:COLOUR")', 1)
    assert declared != text
    (tmp_path / "plug.py").write_text(f"import beside_plug\n{declared}")
    (tmp_path / "beside_plug.py").touch()
    (tmp_path / "words").mkdir()
    (tmp_path / "words/red.txt").touch()
    (tmp_path / "large.py").touch()
    [job] = prepare(JobOptions(["mine"], config=[tmp_path / "mine.yaml"]))
    spec = JobGroupSpec([job.pipeline], [""], job.task, RunDirectory(tmp_path), Limits(), None, 0)
    (tmp_path / "there").mkdir()
    package, plug_ins = travelling_modules(spec, tmp_path / "there")
    assert Path(package).name == "leporello"
    assert {path.name for path in Path(plug_ins).rglob("*.*")} == {
        "plug.py", "beside_plug.py", "red.txt"
    }  # fmt: skip
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "there")])
    environment = WorkerEnvironment.of(spec)
    environment.apply()
    try:
        copy = Path(REMAPPED_PATHS[str(tmp_path / "plug.py")])
        assert copy.is_relative_to(plug_ins)
        assert str(copy.parent) in sys.path
        assert (copy.parent / "words/red.txt").is_file()
        assert environment.variables["COLOUR"] == "red"
    finally:
        REMAPPED_PATHS.clear()


def test_a_worker_reports_that_it_does_not_see_the_directory_of_the_run(tmp_path: Path) -> None:
    """On another machine the directory may be missing, or a different one."""
    environment, token = WorkerEnvironment({}, (), {}), tmp_path / "elsewhere/.ray-d"
    actor = ShardActor(environment, b"", Placement("ray"), token)
    actor.send(dump("stop"))
    kind, message = load(actor.receive())
    assert kind == "failed"
    assert "elsewhere: machine " in message
    assert "does not see this directory; use an --out that all machines share" in message


@pytest.mark.parametrize(
    ("placement", "workers", "gpus"),
    [
        (Placement("ray", workers=3), 3, 0),
        (Placement("ray", workers="auto"), 2, 1),
        (Placement("ray", workers="auto", worker_gpus=0.5), 4, 0.5),
        (Placement("ray", workers="auto", worker_cpus=8), 1, 1),
    ],
)
def test_auto_means_one_worker_per_gpu(placement: Placement, workers: int, gpus: float) -> None:
    """On a cluster with eight cores and two GPUs."""
    result, count = resolved(placement, {"CPU": 8.0, "GPU": 2.0})
    assert (count, result.worker_gpus) == (workers, gpus)
    assert resolved(Placement("ray", workers="auto", worker_cpus=2), {"CPU": 8.0})[1] == 4
