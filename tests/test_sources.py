"""The source hash: a class's own file and every local module that it imports."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from leporello.sources import source_hash, source_hashes


def test_local_imports_are_followed_and_installed_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports inside functions count; numpy and the standard library do not."""
    (tmp_path / "far_part.py").write_text("X = 1\n")
    (tmp_path / "near_part.py").write_text("def f():\n    import far_part\n    return far_part.X\n")
    (tmp_path / "whole_part.py").write_text(
        "import json\nimport numpy\nfrom near_part import f\n\nclass Whole:\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    cls = importlib.import_module("whole_part").Whole
    assert sorted(source_hashes(cls)) == ["far_part", "near_part", "whole_part"]
    before = source_hash(cls)
    (tmp_path / "far_part.py").write_text("X = 2\n")
    assert source_hash(cls) != before


def test_a_stage_of_ours_depends_on_its_own_package_and_the_machinery_it_uses() -> None:
    """Another stage package is no part of it."""
    from chunkers import FixedTokens

    modules = source_hashes(FixedTokens)
    assert {"chunkers.fixed_tokens", "leporello.records"} <= set(modules)
    assert not any(name.startswith(("readers", "retrievers")) for name in modules)


def test_finding_sources_imports_nothing() -> None:
    """A stage that would import a heavy library at work does not import it to be hashed."""
    from readers import Seq2Seq

    before = set(sys.modules)
    source_hash(Seq2Seq)
    assert not {"torch", "transformers"} & (set(sys.modules) - before)
