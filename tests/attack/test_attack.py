"""Tests the first case of each family of attacks."""

from pathlib import Path

import pytest

from tests.attack.program import FAMILIES, numbered


@pytest.mark.integration
@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_case_finds_nothing_wrong(family: str, tmp_path: Path) -> None:
    """Each family checks its results itself."""
    case = numbered(family, 25, 0)
    assert case.run(tmp_path) is None, repr(case)[:500]
