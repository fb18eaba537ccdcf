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


def test_from_the_tenth_example_to_the_last(folder: Path) -> None:
    """Counts, failures and speed are those of the stores, until all examples are finished."""
    run = command(*RUN)
    output = subprocess.DEVNULL
    process = subprocess.Popen(run, cwd=folder, stdout=output, stderr=output)
    until((folder / "out/manifest.json").exists)
    watch = Watch(folder / "out")
    [first] = watch.look()
    until(lambda: watch.look()[0].finished == 9)
    [half] = watch.look()
    assert half == JobProgress("slow", "mills", 9, 1, 12, half.per_second)
    assert (half.per_second > 0) == (first.finished < 9)
    assert "9 of 12" in leporello("watch", folder / "out").stdout
    (folder / "go").touch()
    assert process.wait(60) == 1
    [job] = json.loads(leporello("watch", folder / "out", "--json").stdout)
    assert (job["finished"], job["failed"]) == (12, 1)
    assert watch.look()[0].is_complete
