"""The command line of the attack."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_same_command_goes_on_behind_the_last_case(tmp_path: Path) -> None:
    """What was tried is kept, and told in a table."""
    line = [sys.executable, "-m", "tests.attack", "--seed", "25", "--minutes", "0.01",
            "--family", "signals", "--out", str(tmp_path)]  # fmt: skip
    root = Path(__file__).parents[2]
    told = [
        subprocess.run(line, check=True, capture_output=True, text=True, cwd=root).stdout
        for _ in range(2)
    ]
    assert [text.splitlines()[-1].split() for text in told] == [
        ["signals", "1", "0"],
        ["signals", "2", "0"],
    ]
