"""The source hash: a class's own file and every local module that it imports."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from leporello.cache.source_code import public_name, source_hash, sources
from leporello.tasks import JsonLines


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
    assert sorted(sources(cls).hashes) == ["far_part", "near_part", "whole_part"]
    before = source_hash(cls)
    (tmp_path / "far_part.py").write_text("X = 2\n")
    assert source_hash(cls) == before  # what is imported stays what it was
    sources.cache_clear()
    assert source_hash(cls) != before


def test_a_stage_of_ours_depends_on_its_own_package_and_the_machinery_it_uses() -> None:
    """Another stage package is no part of it."""
    from leporello.chunkers import FixedTokens

    modules = sources(FixedTokens).hashes
    assert {"leporello.chunkers.fixed_tokens", "leporello.core.records"} <= set(modules)
    assert not any(name.startswith(("readers", "retrievers")) for name in modules)


def test_finding_sources_imports_nothing() -> None:
    """A stage that would import a heavy library at work does not import it to be hashed."""
    from leporello.readers import Seq2Seq

    before = set(sys.modules)
    source_hash(Seq2Seq)
    assert not {"torch", "transformers"} & (set(sys.modules) - before)


def test_a_module_that_is_not_imported_yet_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a stage imports only at work is read, also inside of packages, and never run."""
    (tmp_path / "late_parts").mkdir()
    (tmp_path / "late_parts" / "__init__.py").write_text("raise SystemExit('run')\n")
    (tmp_path / "late_parts" / "deep.py").write_text("raise SystemExit('run')\n")
    (tmp_path / "broken_part.py").write_text("def (\n")
    (tmp_path / "early.py").write_text(
        "class Early:\n    def work(self):\n        from late_parts.deep import x\n"
        "        import broken_part, no_such_part\n        from . import beyond\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    cls = importlib.import_module("early").Early
    assert sorted(sources(cls).hashes) == ["broken_part", "early", "late_parts", "late_parts.deep"]
    assert sources(cls).libraries["early"] == {"no_such_part"}


def test_an_installed_class_depends_on_its_package() -> None:
    """The files of what is installed are not hashed: its version says what they are."""
    from pydantic import BaseModel

    assert sources(BaseModel).hashes == {}
    assert set(sources(BaseModel).libraries.values()) == {frozenset({"pydantic"})}
    assert public_name(BaseModel) == "pydantic.main.BaseModel"


def test_the_classes_of_a_package_that_imports_them_late_count() -> None:
    """Tasks load files, and each format's module is among their sources."""
    assert {"leporello.loaders.pdf.pages", "leporello.loaders.html"} <= {*sources(JsonLines).hashes}
