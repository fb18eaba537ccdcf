"""A part of `make attack`: a few cases of each family, of one seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.program import families, numbered

CASES, SEED = 1, 31  # of each family


@pytest.mark.integration
@pytest.mark.parametrize("number", range(CASES))
@pytest.mark.parametrize("family", [*families()])
def test_nothing_gets_through(family: str, number: int, tmp_path: Path) -> None:
    """No silent difference, no traceback, no hang, no status that lies."""
    case = numbered(families()[family], SEED, number)
    assert case.run(tmp_path) is None, f"{case.name}: {case.command}"


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
