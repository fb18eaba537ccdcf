"""A run under way, seen from another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ROOT, leporello

from leporello.errors import UserError
from leporello.watching import Progressing, Watch

CONFIG = """
pipelines:
  slow:
    reader: {class: "./slow.py:Slow"}
tasks:
  mills: {class: JsonLines, path: mills.jsonl, metrics: [f1]}
"""
SLOW = """
import time
from dataclasses import dataclass
from pathlib import Path
from leporello import Output

@dataclass(frozen=True)
class Slow:
    def read(self, inputs):
        while not Path("go").exists() and any("9" in read.question for read in inputs):
            time.sleep(0.02)
        if any("3" in read.question for read in inputs):
            raise ValueError("three")
        return [Output("the mill") for _ in inputs]

    def count(self, texts):
        return [0 for _ in texts]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config whose reader waits at the tenth example until a file is there."""
    (tmp_path / "mine.yaml").write_text(CONFIG)
    (tmp_path / "slow.py").write_text(SLOW)
    rows = [
        {
            "id": f"q{n}", "document": "The mill.", "question": f"What, {n}?",
            "references": ["the mill"],
        }
        for n in range(12)
    ]  # fmt: skip
    (tmp_path / "mills.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def until(seen: Callable[[], bool]) -> None:
    """Waits for something to be so."""
    for _ in range(600):
        if seen():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within half a minute")


RUN = """
from pathlib import Path
from leporello.engine import Limits
from leporello.run import run

run(
    ["slow"], ["mills"], config=[Path("mine.yaml")], out=Path("out"), workers=0, cached=False,
    limits=Limits(inputs=1),
)
"""


def begun(folder: Path) -> subprocess.Popen[bytes]:
    """Starts the run, and waits until its manifest is there."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    until((folder / "out/manifest.json").exists)
    return process


def only(watch: Watch) -> Progressing:
    """Returns how far the only job is."""
    [job] = watch.look()
    return job


def test_from_the_first_example_to_the_last(folder: Path) -> None:
    """Counts, failures and scores grow with the journal; it runs until its process ends."""
    process = begun(folder)
    watch = Watch(folder / "out")
    until(lambda: only(watch).finished == 9)
    half = only(watch)
    assert (half.expected, half.failed) == (12, 1)
    assert half.scores["f1"] == pytest.approx(100 * 8 / 9, abs=1e-3)
    assert half.seconds_left is None or half.seconds_left > 0
    assert watch.running
    assert "running" in leporello("watch", folder / "out").stdout
    (folder / "go").touch()
    assert process.wait(60) == 0
    assert (only(watch).finished, watch.running) == (12, False)
    assert "finished" in leporello("watch", folder / "out").stdout


def test_a_killed_run(folder: Path) -> None:
    """A run that was killed is told from one that runs and one that is finished."""
    process = begun(folder)
    watch = Watch(folder / "out")
    until(lambda: only(watch).finished == 9)
    process.kill()
    process.wait()
    told = json.loads(leporello("watch", folder / "out", "--json").stdout)
    assert told["running"] is False
    assert told["jobs"][0]["finished"] == 9
    assert "no process" in leporello("watch", folder / "out").stdout


def test_journals_as_they_are_written(folder: Path) -> None:
    """Half a line waits; what is tried again is not finished; a new journal is read anew."""
    (folder / "go").touch()
    assert begun(folder).wait(60) == 0
    path = folder / "out/journal/slow/mills.jsonl"
    whole = path.read_bytes()
    cut = whole.rindex(b"\n", 0, -1) + 5
    path.write_bytes(whole[:cut])
    watch = Watch(folder / "out")
    assert only(watch).finished == 11
    path.write_bytes(whole)
    assert only(watch).finished == 12
    path.write_bytes(whole + b'{"retry":[3]}\n')
    assert (only(watch).finished, only(watch).failed) == (11, 0)
    path.write_bytes(b"")
    assert only(watch).finished == 0


def test_no_run(tmp_path: Path) -> None:
    """A directory without a run is told."""
    with pytest.raises(UserError, match="no run lies there"):
        Watch(tmp_path)
