"""Runs at URLs: resumed on any machine, written by one process, never lost, viewed remotely."""

import json
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest
from command_line import ROOT, read_lines, write_files
from storage_servers import Shelf, register

from leporello.core.errors import UserError
from leporello.runs.run import Run, run
from leporello.storage import runs, to_path
from leporello.storage.location import LOCK, Location
from leporello.storage.runs import LostError, RemoteRun, remote_run, run_at, view

URL = "shelf://bucket/runs/x"
EXAMPLES = 120
# A reader whose answers show their batch; SLOW delays it, STOP interrupts the run.
PLUG_IN = """
import hashlib, os, signal, time
from dataclasses import dataclass
from leporello import Output

@dataclass(frozen=True)
class Mates:
    def read(self, inputs):
        time.sleep(float(os.environ.get("SLOW", "0")))
        if os.environ.get("STOP"):
            os.kill(os.getpid(), signal.SIGTERM)
        mates = hashlib.sha256("".join(r.question for r in inputs).encode()).hexdigest()[:8]
        return [Output(f"{read.question} {mates} {len(inputs)}") for read in inputs]

    def count(self, texts):
        return [len(text) for text in texts]
"""
CONFIG = """
pipelines:
  mine: {reader: {class: "./plug.py:Mates"}}
tasks:
  lamps: {class: JsonLines, path: lamps.jsonl}
"""
STORE = "journal/mine/lamps/00000.sqlite"
SHARD = {STORE: "store", "mine/lamps/tracebacks/q1.txt": "trace"}


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An object store with a bucket, and a machine with an empty cache."""
    monkeypatch.setenv("SHELF", str(tmp_path / "shelf"))
    (tmp_path / "shelf" / "bucket").mkdir(parents=True)
    register()
    _machine(tmp_path, monkeypatch, "one")
    Shelf.names.clear()
    yield tmp_path / "shelf" / "bucket" / "runs" / "x"
    Shelf.writes, Shelf.fault = None, None


@pytest.fixture
def config(tmp_path: Path) -> Path:
    rows = ({"id": f"q{n}", "document": f"Lamp {n}.", "question": f"{n}?"} for n in range(EXAMPLES))
    write_files(tmp_path, {"lamps.jsonl": rows, "plug.py": PLUG_IN, "mine.yaml": CONFIG})
    return tmp_path / "mine.yaml"


def _machine(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Switches to another machine, which has its own cache."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(folder / name))


def _run(config: Path, out: str | Path = URL, **options: Any) -> Run:
    return run(["mine"], ["lamps"], config=[config], out=to_path(out), workers=0, **options)


def _files(folder: Path) -> dict[str, bytes]:
    internal = (".lock", ".lock.holder", ".remote.jsonl", LOCK)
    files = (file for file in folder.rglob("*") if file.is_file() and file.name not in internal)
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def _predictions(folder: Path) -> bytes:
    return (folder / "mine" / "lamps" / "predictions.jsonl").read_bytes()


def _lock(store: Path, *, minutes: float) -> None:
    row = {"host": "far", "pid": 1, "time": time.time() - 60 * minutes, "token": "x"}
    write_files(store, {LOCK: json.dumps(row)})


# -- complete runs -------------------------------------------------------------------------------


def test_a_run_at_a_url_leaves_the_same_files(tmp_path: Path, store: Path, config: Path) -> None:
    _run(config)
    _run(config, tmp_path / "here")
    remote, local = _files(store), _files(tmp_path / "here")
    assert remote.keys() == local.keys()
    assert _predictions(store) == _predictions(tmp_path / "here")
    assert not (store / LOCK).exists()
    assert URL not in remote["run.yaml"].decode()


def _started(config: Path, folder: Path, machine: str, **variables: str) -> subprocess.Popen[str]:
    """Starts a run in a separate process that has registered `shelf://`."""
    script = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests/support')!r}]\n"
        "from storage_servers import register; register()\n"
        "from leporello.cli import main; main()\n"
    )
    arguments = ["run", "mine", "--task", "lamps", "--config", str(config), "--workers", "0"]
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments, "--out", URL],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "LEPORELLO_CACHE": str(folder / machine), **variables},
    )  # fmt: skip


def test_a_killed_run_resumes_at_once_on_its_machine(
    tmp_path: Path, store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other machines must wait until the lock is stale; predictions equal those of one run."""
    child = _started(config, tmp_path, "one", SLOW="60")
    while not (store / "run.yaml").exists():
        assert child.poll() is None, child.communicate()
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    _machine(tmp_path, monkeypatch, "two")
    with pytest.raises(UserError, match=f"process {child.pid} on .* is running there"):
        _run(config)
    _machine(tmp_path, monkeypatch, "one")
    _run(config)
    _run(config, tmp_path / "here")
    assert _predictions(store) == _predictions(tmp_path / "here")


def test_a_terminated_run_uploads_its_results_and_unlocks(
    tmp_path: Path, store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After SIGTERM, as clusters send it, all outputs are in the store."""
    monkeypatch.setenv("STOP", "yes")
    assert _run(config).stopped == "interrupted"
    assert read_lines(store / "mine/lamps/predictions.jsonl")
    assert _files(store) == _files(next((tmp_path / "one" / "runs").glob("*/x")))
    assert not (store / LOCK).exists()


def test_the_next_run_repeats_failed_uploads(tmp_path: Path, store: Path, config: Path) -> None:
    Shelf.writes = 3  # the lock, manifest and config
    with pytest.raises(UserError, match="cannot be reached") as caught:
        _run(config)
    [copy] = (tmp_path / "one" / "runs").glob("*/x")
    assert f"all files are in {copy}" in str(caught.value)
    Shelf.writes = None
    assert not (store / "mine").exists()
    before = _predictions(copy)
    _run(config)
    assert _predictions(store) == _predictions(copy) == before


def test_an_updated_run_replaces_the_results_in_the_store(
    store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --update, the old results are deleted before the new manifest is uploaded."""
    _run(config)
    monkeypatch.setattr(Shelf, "writes", 2)  # the lock, and the deletion
    again: dict[str, Any] = {"overrides": ["combiner.class=ReadEach"], "update": True}
    with pytest.raises(UserError, match="cannot be reached"):
        _run(config, **again)
    assert not [*store.rglob("mine/**/*.jsonl")]
    assert "ReadEach" not in (store / "run.yaml").read_text(encoding="utf-8")
    monkeypatch.setattr(Shelf, "writes", None)
    _run(config, **again)
    assert "ReadEach" in (store / "run.yaml").read_text(encoding="utf-8")


def test_an_unusable_store_stops_a_run_before_it_starts(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shelf, "fault", PermissionError("AccessDenied"))
    with pytest.raises(UserError, match=f"{URL}/.*: access is refused"):
        _run(config)
    monkeypatch.setattr(Shelf, "fault", TimeoutError("Read timeout"))
    with pytest.raises(UserError, match=f"{URL}/.*: the server cannot be reached.*Read timeout"):
        _run(config)
    monkeypatch.setattr(Shelf, "fault", None)
    with pytest.raises(UserError, match=r"shelf://nobody/x: .*bucket does not exist"):
        _run(config, "shelf://nobody/x")
    with pytest.raises(UserError, match="web servers cannot store runs"):
        _run(config, "https://127.0.0.1/x")
    assert not [*(tmp_path / "one" / "runs").rglob("*.jsonl")]


# -- resuming ------------------------------------------------------------------------------------


def test_other_files_at_a_url_are_left_alone(store: Path) -> None:
    write_files(store, {"thesis.txt": "mine"})
    with (
        pytest.raises(UserError, match=r"contains other files \(thesis.txt, …\) and no run"),
        remote_run(URL),
    ):
        pass
    assert list(_files(store)) == ["thesis.txt"]
    assert not (store / LOCK).exists()


def test_a_deleted_run_is_not_silently_restored(store: Path) -> None:
    with remote_run(URL) as first:
        write_files(first.directory, {"manifest.json": "{}"})
        first.put("manifest.json")
    shutil.rmtree(store)
    with pytest.raises(UserError, match="the run was deleted there"), remote_run(URL):
        pass
    shutil.rmtree(first.directory)
    with remote_run(URL) as again:
        assert _files(again.directory) == {}


def test_local_files_remain_if_the_run_is_the_same(store: Path) -> None:
    """This machine resumes its unfinished shard, and downloads the shards of other machines."""
    with remote_run(URL) as first:
        write_files(first.directory, {"manifest.json": "{}"})
        first.put("manifest.json")
        write_files(first.directory, {"journal/begun.jsonl": "mine"})
    write_files(store, {"journal/theirs.jsonl": "theirs"})
    both = {"journal/begun.jsonl", "journal/theirs.jsonl"}
    with remote_run(URL) as again:
        assert _files(again.directory).keys() == {"manifest.json", *both}
        write_files(again.directory, {"journal/again.jsonl": "mine"})
    write_files(store, {"manifest.json": "[]"})
    with remote_run(URL) as other_run:
        assert _files(other_run.directory).keys() == {"manifest.json", *both}


def test_a_file_that_was_not_uploaded_is_newer_than_the_remote_one(store: Path) -> None:
    with remote_run(URL) as first:
        write_files(first.directory, {"manifest.json": "{}", "scores": "old"})
        first.put("manifest.json", "scores")
        write_files(first.directory, {"scores": "newer"})
    with remote_run(URL) as again:
        assert (again.directory / "scores").read_text() == "newer"
    write_files(store, {"scores": "another machine's"})
    with remote_run(URL) as again:
        assert (again.directory / "scores").read_text() == "another machine's"


def test_finished_files_of_a_killed_process_are_uploaded(store: Path) -> None:
    with remote_run(URL) as first:
        write_files(first.directory, {"manifest.json": "{}"})
        first.put("manifest.json")
        write_files(first.directory, {**SHARD, "mine/lamps/00001.part/failures.jsonl": "half"})
        write_files(first.directory, {"run.yaml.part": "half"})
    assert _files(store).keys() == {"manifest.json"}
    with remote_run(URL):
        assert _files(store).keys() == {"manifest.json", *SHARD}


def test_the_store_of_a_killed_worker_is_uploaded_by_the_next_one(store: Path) -> None:
    """A store with a journal of SQLite is incomplete."""
    write_files(store, {"manifest.json": "{}"})
    with remote_run(URL) as run:
        write_files(run.directory, {STORE: "torn", f"{STORE}-journal": "what was there before"})
        run.put("journal")
        assert _files(store).keys() == {"manifest.json"}
        (run.directory / f"{STORE}-journal").unlink()
        run.put("journal")
    assert _files(store).keys() == {"manifest.json", STORE}


def test_only_new_files_are_downloaded(store: Path) -> None:
    write_files(store, {"manifest.json": "{}", **SHARD})
    with remote_run(URL) as first:
        assert _files(first.directory) == _files(store)
        write_files(first.directory, {"metrics.json": "1"})
        first.put("metrics.json")
    Shelf.names.clear()
    with remote_run(URL) as again:
        assert _files(again.directory) == _files(store)
    assert [name for name in Shelf.names if not name.endswith(LOCK)] == []


def test_a_name_outside_a_copy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write access to the bucket does not give write access to this machine."""
    monkeypatch.setattr(Location, "files", lambda *_: {"../x": {"size": 1}})
    with pytest.raises(UserError, match="is not a valid file of a run"):
        RemoteRun(URL, tmp_path / "copy").get()
    assert not (tmp_path / "x").exists()


# -- uploading -----------------------------------------------------------------------------------


def test_locally_deleted_files_are_deleted_at_the_url(tmp_path: Path, store: Path) -> None:
    write_files(tmp_path, SHARD)
    remote = RemoteRun(URL, tmp_path)
    remote.put("journal", "mine")
    assert _files(store) == {name: content.encode() for name, content in SHARD.items()}
    shutil.rmtree(tmp_path / "mine")
    remote.put("mine")
    assert list(_files(store)) == [STORE]


def test_the_driver_downloads_files_of_workers_on_other_machines(tmp_path: Path) -> None:
    """Workers need only a URL, a folder and the token; they can upload while the lock exists."""
    with remote_run(URL) as driver:
        sent = pickle.dumps(replace(driver, directory=tmp_path / "far"))
        worker: RemoteRun = pickle.loads(sent)  # noqa: S301 -- made above
        write_files(worker.directory, SHARD)
        worker.put(*SHARD)
        driver.get(STORE)
        assert _files(driver.directory).keys() == {STORE}
        driver.get()
        assert _files(driver.directory) == _files(worker.directory)
    with pytest.raises(LostError, match=r"lost the lock \(it was deleted\)"):
        worker.put(STORE)


def test_stores_have_only_complete_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, memory = "memory://bucket/run", fsspec.filesystem("memory")
    remote = RemoteRun(url, tmp_path)
    write_files(tmp_path, {"manifest.json": "first"})
    remote.put("manifest.json")
    write_files(tmp_path, {"manifest.json": "second"})
    put_file = type(memory).put_file

    def breaks_off(system: Any, file: str, path: str, **_: object) -> None:
        put_file(system, file, path)
        raise ConnectionResetError

    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "put_file", breaks_off)
        with pytest.raises(UserError, match="cannot be reached"):
            remote.put("manifest.json")
    assert memory.cat_file("/bucket/run/manifest.json") == b"first"
    assert list(Location(url).files()) == ["manifest.json"]
    with remote_run(url) as again:
        assert (again.directory / "manifest.json").read_text() == "first"
        write_files(again.directory, {"manifest.json": "second"})
        again.put("manifest.json")
    assert (run_at(url) / "manifest.json").read_text() == "second"
    memory.rm("/bucket", recursive=True)


# -- the lock ------------------------------------------------------------------------------------


def test_a_run_that_another_machine_has_locked_is_refused(store: Path) -> None:
    _lock(store, minutes=5)
    with (
        pytest.raises(UserError, match=r"process 1 on far .* is running there.*try again ten min"),
        remote_run(URL),
    ):
        pass
    assert json.loads((store / LOCK).read_bytes())["host"] == "far"


def test_a_stale_lock_is_taken_over(store: Path, caplog: pytest.LogCaptureFixture) -> None:
    _lock(store, minutes=11)
    with caplog.at_level(logging.INFO, "leporello"), remote_run(URL):
        assert "taken over from process 1 on far" in caplog.text
    for content in ("[]", "", '{"time": "x"}', "{}"):
        write_files(store, {LOCK: content})
        with remote_run(URL) as run:
            run.put("nothing")


def test_only_one_of_several_simultaneous_machines_gets_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are refused, or notice the loss of the lock before they write."""
    copies, tokens, errors = iter(range(8)), list[str](), list[str]()
    start, end = threading.Barrier(8), threading.Barrier(8)
    monkeypatch.setattr(runs, "local_copy", lambda *_: tmp_path / f"machine {next(copies)}" / "x")

    def begin() -> None:
        start.wait()
        try:
            with remote_run(URL) as run:
                tokens.append(run.token)
                end.wait()
        except UserError as error:
            errors.append(str(error))
            end.wait()

    threads = [threading.Thread(target=begin) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokens) == 1
    assert all("is running there" in text or "lost the lock" in text for text in errors)


def test_the_lock_is_refreshed_while_it_is_held(
    store: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runs, "_EVERY", 0.01)

    def refresh_time() -> float:
        return float(json.loads((store / LOCK).read_bytes())["time"])

    with remote_run(URL) as run:
        first = refresh_time()
        while refresh_time() == first:
            time.sleep(0.01)
        Shelf.fault = TimeoutError("no answer")
        while "the lock will be refreshed again" not in caplog.text:
            time.sleep(0.01)
        Shelf.fault = None
        run.check()
    assert not (store / LOCK).exists()


def test_a_run_without_its_lock_writes_no_more(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, a machine was suspended while another one took over the run."""
    monkeypatch.setattr(runs, "_EVERY", 3600)  # so that the refreshing thread does nothing
    with remote_run(URL) as run:
        write_files(run.directory, {"manifest.json": "{}"})
        _lock(store, minutes=0)
        with pytest.raises(LostError, match="process 1 on far"):
            run.put("manifest.json")
        with pytest.raises(LostError, match="lost the lock"):
            run.check()
    assert json.loads((store / LOCK).read_bytes())["host"] == "far"
    assert not (store / "manifest.json").exists()


# -- viewing -------------------------------------------------------------------------------------


def test_a_run_at_a_url_can_be_viewed(tmp_path: Path, store: Path) -> None:
    """The view has the current files, in another copy than the one that a run resumes from."""
    write_files(store, {"manifest.json": "{}", **SHARD, LOCK: "{}"})
    first = run_at(URL)
    assert _files(first).keys() == {"manifest.json", *SHARD}
    shutil.rmtree(store / "mine")
    write_files(store, {"metrics.json": "0.71"})
    write_files(first, {"export/mine.parquet": "made here"})
    assert run_at(URL) == first
    write_files(store, {"metrics.json": "0.72"})
    view(to_path(URL))
    names = {"manifest.json", STORE, "metrics.json"}
    assert _files(first).keys() == {*names, "export/mine.parquet"}
    assert (first / "metrics.json").read_text() == "0.72"
    shutil.rmtree(store)
    with pytest.raises(UserError, match="is not a run"):
        run_at(URL)
    assert run_at(str(tmp_path)) == tmp_path
