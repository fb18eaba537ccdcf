"""Runs at URLs: resumed on any machine, never written by two, never lost, seen from afar."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, leporello, read_lines
from remote_files import Shelf, register

from leporello.errors import UserError
from leporello.remote import place, runs
from leporello.remote.folder import LOCK, Folder
from leporello.remote.replica import Replica
from leporello.remote.views import run_at
from leporello.run import Run, run

URL = "shelf://bucket/runs/x"
EXAMPLES = 120
# It tells who was read together; what it reads is slow where SLOW says so.
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


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An object store with a bucket; a machine whose cache is empty."""
    monkeypatch.setenv("SHELF", str(tmp_path / "shelf"))
    (tmp_path / "shelf" / "bucket").mkdir(parents=True)
    register()
    _machine(tmp_path, monkeypatch, "one")
    yield tmp_path / "shelf" / "bucket" / "runs" / "x"
    Shelf.writes, Shelf.down, Shelf.denied = None, False, False


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config with a pipeline of its own, and a task."""
    rows = ({"id": f"q{n}", "document": f"Lamp {n}.", "question": f"{n}?"} for n in range(EXAMPLES))
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "lamps.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "plug.py").write_text(PLUG_IN, encoding="utf-8")
    file = tmp_path / "mine.yaml"
    file.write_text(
        'pipelines:\n  mine:\n    reader: {class: "./plug.py:Mates"}\n'
        "tasks:\n  lamps: {class: JsonLines, path: lamps.jsonl}\n",
        encoding="utf-8",
    )
    return file


def _machine(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Path:
    """Goes to another machine: its cache is its own."""
    monkeypatch.setenv("LEPORELLO_CACHE", str(folder / name))
    return folder / name


def _run(config: Path, out: str | Path = URL, **given: Any) -> Run:
    return run(["mine"], ["lamps"], config=[config], out=place(out), workers=0, **given)


def _files(folder: Path) -> dict[str, bytes]:
    own = (".lock", ".lock.holder", ".remote.json", LOCK)
    files = (file for file in folder.rglob("*") if file.is_file() and file.name not in own)
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def _predictions(folder: Path) -> bytes:
    return (folder / "mine" / "lamps" / "predictions.jsonl").read_bytes()


def _lock(store: Path, *, minutes: float, machine: str = "another", pid: int = 1) -> None:
    heard = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
    row = {"host": "far", "pid": pid, "time": heard, "token": "x", "machine": machine}
    store.mkdir(parents=True, exist_ok=True)
    (store / LOCK).write_text(json.dumps(row), encoding="utf-8")


def test_a_run_at_a_url_leaves_there_what_one_on_the_disk_leaves(
    tmp_path: Path, store: Path, config: Path
) -> None:
    """The same files, the same predictions, and no lock."""
    _run(config)
    _run(config, tmp_path / "here")
    there, here = _files(store), _files(tmp_path / "here")
    assert there.keys() == here.keys()
    name = "mine/lamps/predictions.jsonl"
    assert there[name] == here[name]
    assert not (store / LOCK).exists()
    assert URL not in there["run.yaml"].decode()


def test_another_machine_goes_on_where_the_first_stopped(
    tmp_path: Path, store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the rest is read, and the predictions are those of one run."""
    _run(config, limit=64)
    steps = [row for row in read_lines(store / "journal/mine/lamps.jsonl") if "step" in row]
    _machine(tmp_path, monkeypatch, "two")
    _run(config)
    lines = read_lines(store / "journal/mine/lamps.jsonl")
    assert [row for row in lines if "step" in row][: len(steps)] == steps
    _run(config, tmp_path / "here")
    assert _predictions(store) == _predictions(tmp_path / "here")


def test_what_a_run_finishes_is_saved_while_it_runs(
    store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every minute, which here is much shorter."""
    monkeypatch.setattr(runs, "_EVERY", 0.02)
    monkeypatch.setenv("SLOW", "0.3")
    found: list[int] = []
    push = Replica.push

    def pushed(self: Replica) -> int:
        number = push(self)
        journal = store / "journal/mine/lamps.jsonl"
        found.append(len(read_lines(journal)) if journal.exists() else 0)
        return number

    monkeypatch.setattr(Replica, "push", pushed)
    _run(config)
    assert found[0] == 0
    assert any(0 < lines < found[-1] for lines in found)


def _started(config: Path, folder: Path, machine: str, **given: str) -> subprocess.Popen[str]:
    """Starts a run in a process of its own, in which `shelf://` is known."""
    script = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]\n"
        "from remote_files import register; from leporello.remote import runs\n"
        "register(); runs._EVERY = 0.1\n"
        "from leporello.cli import main; main()\n"
    )
    arguments = ["run", "mine", "--task", "lamps", "--config", str(config), "--workers", "0"]
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments, "--out", URL],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "LEPORELLO_CACHE": str(folder / machine), **given},
    )  # fmt: skip


def _wait_for_lines(child: subprocess.Popen[str], journal: Path, count: int) -> None:
    while not journal.exists() or len(journal.read_bytes().splitlines()) < count:
        assert child.poll() is None, child.communicate()
        time.sleep(0.02)


def test_a_run_that_is_killed_goes_on_elsewhere_with_the_same_predictions(
    tmp_path: Path, store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lock is that of a dead process of this machine, hence taken over at once, and told."""
    child = _started(config, tmp_path, "one", SLOW="0.5")
    _wait_for_lines(child, store / "journal/mine/lamps.jsonl", 30)
    with pytest.raises(UserError, match=f"process {child.pid} on .* is running there"):
        _run(config)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert (store / LOCK).exists()
    _machine(tmp_path, monkeypatch, "two")
    _run(config)
    _run(config, tmp_path / "here")
    assert _predictions(store) == _predictions(tmp_path / "here")
    _machine(tmp_path, monkeypatch, "one")  # which had read more than it saved
    assert _predictions(_run(config).directory) == _predictions(store)


def test_a_run_that_is_asked_to_end_saves_and_unlocks(
    tmp_path: Path, store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM, as a cluster sends it: all that was read lies there."""
    monkeypatch.setenv("STOP", "yes")
    assert _run(config).stopped == "interrupted"
    assert len(read_lines(store / "mine/lamps/predictions.jsonl")) == 32
    assert _files(store) == _files(next((tmp_path / "one" / "runs").glob("*/x")))
    assert not (store / LOCK).exists()


def test_a_run_that_ends_by_a_users_mistake_is_saved(
    store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was finished before it lies there."""
    from leporello.batch import Batch

    def changed(*_: object) -> None:
        raise UserError("the data changed")

    monkeypatch.setattr(Batch, "_check_data", changed)
    with pytest.raises(UserError, match="the data changed"):
        _run(config)
    assert len(read_lines(store / "journal/mine/lamps.jsonl")) > EXAMPLES
    assert not (store / LOCK).exists()


def test_a_run_that_another_machine_has_is_refused(store: Path, config: Path) -> None:
    """The message says who, and from when on it would be taken over."""
    _lock(store, minutes=5)
    with pytest.raises(UserError, match=r"process 1 on far .* is running there.*taken over from"):
        _run(config)
    assert (store / LOCK).exists()
    assert not (store / "manifest.json").exists()


def test_a_stale_lock_is_taken_over(
    store: Path, config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With a line in the log; also one that is no lock at all."""
    _lock(store, minutes=11)
    with caplog.at_level(logging.INFO, "leporello"):
        _run(config)
    assert "taken over from process 1 on far" in caplog.text
    (store / LOCK).write_text("[]", encoding="utf-8")
    assert not _run(config).stopped


def test_a_run_whose_lock_is_lost_ends_and_writes_no_more(
    store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a machine slept, and another has gone on."""
    monkeypatch.setattr(runs, "_EVERY", 0.02)
    monkeypatch.setenv("SLOW", "0.1")
    save = runs._HeldRemotely.save

    def then_lost(self: runs._HeldRemotely) -> None:
        save(self)
        _lock(store, minutes=0)
        monkeypatch.setattr(runs._HeldRemotely, "save", save)

    monkeypatch.setattr(runs._HeldRemotely, "save", then_lost)
    with pytest.raises(UserError, match="lost the lock"):
        _run(config)
    assert json.loads((store / LOCK).read_bytes())["host"] == "far"
    assert not (store / "journal").exists()


def test_a_run_that_went_on_on_two_machines_is_refused(
    tmp_path: Path, store: Path, config: Path
) -> None:
    """Neither journal begins with the other one; the message says what to do."""
    _run(config, limit=64)
    [copy] = (tmp_path / "one" / "runs").glob("*/x")
    for journal in (store / "journal/mine/lamps.jsonl", copy / "journal/mine/lamps.jsonl"):
        text = journal.read_text(encoding="utf-8")
        name = "there" if journal.is_relative_to(store) else "here"
        journal.write_text(f'{text}{{"done":64,"failure":"{name}"}}\n', encoding="utf-8")
    before = _files(store)
    with pytest.raises(UserError, match=f"went on there and on this machine.*{copy}: remove it"):
        _run(config)
    assert _files(store) == before
    shutil.rmtree(copy)
    Replica(Folder.at(URL), copy).pull()
    assert _files(store).items() <= _files(copy).items()


def test_what_this_machine_could_not_save_is_kept_and_saved_next_time(
    tmp_path: Path, store: Path, config: Path
) -> None:
    """A store that goes down does not stop a run; the end tells where all of it is."""
    Shelf.writes = 5  # the lock, before and behind its folder, and again; two files
    with pytest.raises(UserError, match="cannot be reached") as caught:
        _run(config)
    [copy] = (tmp_path / "one" / "runs").glob("*/x")
    assert f"all of it is in {copy}" in str(caught.value)
    Shelf.writes = None
    assert not (store / "journal").exists()
    modified = (copy / "journal/mine/lamps.jsonl").stat().st_mtime_ns
    _run(config)
    assert (copy / "journal/mine/lamps.jsonl").stat().st_mtime_ns == modified
    assert _predictions(store) == _predictions(copy)


def test_a_run_that_is_gone_there_is_not_brought_back_in_silence(
    tmp_path: Path, store: Path, config: Path
) -> None:
    """Who removed it wants another, or wants it back: the message tells both."""
    _run(config)
    shutil.rmtree(store)
    with pytest.raises(UserError, match="the run that lay there is gone"):
        _run(config)
    shutil.rmtree(tmp_path / "one" / "runs")
    _run(config)
    assert (store / "manifest.json").exists()


def test_other_files_there_are_left_alone(store: Path, config: Path) -> None:
    """As on the disk."""
    store.mkdir(parents=True)
    (store / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=r"holds other files \(thesis.txt, …\) and no run"):
        _run(config)
    assert list(_files(store)) == ["thesis.txt"]


def test_a_run_that_is_done_again_is_another_one_there_too(
    tmp_path: Path, store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --update the old journal goes before the new manifest comes."""
    _run(config)
    monkeypatch.setattr(Shelf, "writes", 5)  # the lock twice, and what goes: not all of that
    again: dict[str, Any] = {"overrides": ["combiner.class=ReadEach"], "update": True}
    with pytest.raises(UserError, match="cannot be reached"):
        _run(config, **again)
    assert not (store / "journal/mine/lamps.jsonl").exists()
    assert "ReadEach" not in (store / "run.yaml").read_text(encoding="utf-8")
    monkeypatch.setattr(Shelf, "writes", None)
    _machine(tmp_path, monkeypatch, "two")
    _run(config, **again)
    assert "ReadEach" in (store / "run.yaml").read_text(encoding="utf-8")


def test_a_save_that_is_cut_off_anywhere_leaves_a_run_that_goes_on(
    tmp_path: Path, store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each write, another machine comes to the same predictions."""
    here = _run(config, tmp_path / "here", limit=96).directory
    whole = _predictions(_run(config, tmp_path / "whole").directory)
    total = Replica(Folder.at(URL), here).push()
    for cut in range(1, total):
        shutil.rmtree(store)
        (here / ".remote.json").unlink()
        Shelf.writes = cut
        with pytest.raises(UserError, match="cannot be reached"):
            Replica(Folder.at(URL), here).push()
        Shelf.writes = None
        _machine(tmp_path, monkeypatch, f"machine {cut}")
        _run(config)
        assert _predictions(store) == whole


def test_a_line_that_is_being_written_is_not_saved(
    tmp_path: Path, store: Path, config: Path
) -> None:
    """Journals there have whole lines only."""
    here = _run(config, tmp_path / "here").directory
    journal = here / "journal/mine/lamps.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"done": 4')
    Replica(Folder.at(URL), here).push()
    assert (store / "journal/mine/lamps.jsonl").read_bytes() == whole


def test_only_what_changed_is_put_there(tmp_path: Path, config: Path) -> None:
    """A second time there is nothing to put."""
    here = _run(config, tmp_path / "here").directory
    replica = Replica(Folder.at(URL), here)
    assert replica.push() == len(_files(here))
    (here / "report.html").write_text("x", encoding="utf-8")
    assert (replica.push(), Replica(Folder.at(URL), here).push()) == (1, 0)


def test_a_name_that_leads_out_of_the_copy_is_refused(tmp_path: Path) -> None:
    """Whoever may write to the bucket may not write to this machine."""
    replica = Replica(Folder.at(URL), tmp_path / "copy")
    with pytest.raises(UserError, match="is no name of a run's file"):
        replica._fetch({"../x": "1"}, {"../x"})


def test_a_run_at_a_url_can_be_looked_at(
    tmp_path: Path, store: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies there now, in a copy that is not the one that a run goes on in."""
    _run(config, limit=32)
    _machine(tmp_path, monkeypatch, "two")
    first = run_at(URL)
    assert len(read_lines(first / "mine/lamps/predictions.jsonl")) == 32
    _run(config)
    assert run_at(URL) == first
    assert _predictions(first) == _predictions(store)
    shutil.rmtree(store)
    with pytest.raises(UserError, match="no run lies there"):
        run_at(URL)
    assert run_at(str(tmp_path)) == tmp_path


def test_a_store_that_refuses_ends_a_run_before_any_work(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Access denied; a bucket that is not there; a web server."""
    monkeypatch.setattr(Shelf, "denied", True)
    with pytest.raises(UserError, match="access is refused"):
        _run(config)
    monkeypatch.setattr(Shelf, "denied", False)
    with pytest.raises(UserError, match="there is no nobody; make it first"):
        _run(config, "shelf://nobody/x")
    with pytest.raises(UserError, match="web servers are only read from"):
        _run(config, "https://127.0.0.1/x")
    assert not [*(tmp_path / "one").rglob("*.jsonl")]


def test_a_url_of_a_file_is_a_path_on_the_disk(tmp_path: Path, config: Path) -> None:
    """`file://` needs no copy and no lock there."""
    out = f"file://{tmp_path / 'run'}"
    arguments = ("mine", "--task", "lamps", "--config", config, "--workers", "0", "--out", out)
    leporello("run", *arguments)
    assert len(read_lines(tmp_path / "run/mine/lamps/predictions.jsonl")) == EXAMPLES
