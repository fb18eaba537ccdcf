"""Tests of watching a run from another process."""

import json
import subprocess
from pathlib import Path

import pytest
from command_line import HERE, command, leporello, until, write_files

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
from pathlib import Path
from leporello import Output
from leporello.readers import Lead

class Slow(Lead):
    def read(self, inputs):
        while not Path("go").exists() and any("9" in read.question for read in inputs):
            time.sleep(0.02)
        if any("3" in read.question for read in inputs):
            raise ValueError("three")
        return [Output("the mill") for _ in inputs]
"""
RUN = (
    "run", "slow", "--task", "mills", "--config", "mine.yaml", "--out", "out", *HERE, "--no-cache",
    "--window", "1", "--shard-examples", "3",
)  # fmt: skip


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


def start(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        command(*RUN), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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
    assert process.wait(60) == 1
    assert (progress_of(watch).finished, watch.running) == (12, False)
    assert "finished" in leporello("watch", folder / "out").stdout


def test_a_killed_run(folder: Path) -> None:
    """A killed run is neither shown as running nor as finished."""
    process, watch = start(folder), Watch(folder / "out")
    until(lambda: is_waiting(progress_of(watch)))
    process.kill()
    process.wait()
    assert progress_of(watch).finished == 9
    status = json.loads(leporello("watch", folder / "out", "--json").stdout)
    assert status["running"] is False
    assert "not running" in leporello("watch", folder / "out").stdout


def test_a_shard_that_is_tried_again(folder: Path) -> None:
    (folder / "go").touch()
    leporello(*RUN, status=1, folder=folder)
    rows = [json.loads(line) for line in (folder / "out/workers.jsonl").read_text().splitlines()]
    with (folder / "out/workers.jsonl").open("a") as file:
        file.write(json.dumps({**rows[1], "outcome": "died"}) + "\n")
    job = progress_of(Watch(folder / "out"))
    assert (job.shards, job.under_way, job.died, job.finished, job.failed) == (4, 0, 1, 12, 1)
    assert "4, 1 tried again" in leporello("watch", folder / "out").stdout
