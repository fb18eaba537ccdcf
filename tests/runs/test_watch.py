"""Tests of watching a run from another process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, leporello, until, write_files

from leporello.core.errors import UserError
from leporello.runs.watch import JobProgress, Watch

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
    """A config whose reader waits at the tenth example for a file to exist."""
    rows = [
        {
            "id": f"q{n}", "document": f"The mill, {n}.", "question": f"What, {n}?",
            "references": ["the mill"],
        }
        for n in range(12)
    ]  # fmt: skip
    write_files(tmp_path, {"mine.yaml": CONFIG, "slow.py": SLOW, "mills.jsonl": rows})
    return tmp_path


RUN = """
from pathlib import Path
from leporello.engine.limits import Limits
from leporello.runs.run import run

run(
    ["slow"], ["mills"], config=[Path("mine.yaml")], out=Path("out"), workers=0, cached=False,
    limits=Limits(window=1, shard_examples=3),
)
"""


def start(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    until((folder / "out/manifest.json").exists)
    return process


def progress_of(watch: Watch) -> JobProgress:
    [job] = watch.look()
    return job


def is_waiting(job: JobProgress) -> bool:
    """Returns whether the last of four shards has started, in which the reader waits."""
    return (job.shards, job.under_way) == (3, 1)


def test_from_the_first_example_to_the_last(folder: Path) -> None:
    """Counts and failures grow with examples, scores with shards, until the run ends."""
    process = start(folder)
    watch = Watch(folder / "out")
    until(lambda: is_waiting(progress_of(watch)))
    half = progress_of(watch)
    assert (half.finished, half.expected, half.failed, half.died) == (9, 12, 1, 0)
    assert half.scores["f1"] == pytest.approx(100 * 8 / 9, abs=1e-3)
    assert half.seconds_left is None or half.seconds_left > 0
    assert watch.running
    output = leporello("watch", folder / "out").stdout
    assert "running" in output
    assert "3 +1" in output
    (folder / "go").touch()
    assert process.wait(60) == 0
    assert (progress_of(watch).finished, watch.running) == (12, False)
    assert "finished" in leporello("watch", folder / "out").stdout


def killed_run(folder: Path) -> Watch:
    """Kills the run while the reader waits, and returns a watch of it."""
    process, watch = start(folder), Watch(folder / "out")
    until(lambda: is_waiting(progress_of(watch)))
    process.kill()
    process.wait()
    return watch


def test_a_killed_run(folder: Path) -> None:
    """A killed run is neither shown as running nor as finished."""
    watch = killed_run(folder)
    assert progress_of(watch).finished == 9
    status = json.loads(leporello("watch", folder / "out", "--json").stdout)
    assert status["running"] is False
    assert "not running" in leporello("watch", folder / "out").stdout


def test_a_shard_that_is_tried_again(folder: Path) -> None:
    (folder / "go").touch()
    assert start(folder).wait(60) == 0
    rows = [json.loads(line) for line in (folder / "out/workers.jsonl").read_text().splitlines()]
    with (folder / "out/workers.jsonl").open("a") as file:
        file.write(json.dumps({**rows[1], "outcome": "died"}) + "\n")
    job = progress_of(Watch(folder / "out"))
    assert (job.shards, job.under_way, job.died, job.finished, job.failed) == (4, 0, 1, 12, 1)
    assert "4, 1 tried again" in leporello("watch", folder / "out").stdout


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run"):
        Watch(tmp_path)
