"""Tests of source hashes, which cover the file of a class and every local module it imports."""

import importlib
import sys
from pathlib import Path

import pytest

from leporello.cache.source_code import public_name, source_hash, sources
from leporello.tasks import JsonLines


def test_local_imports_are_followed_and_installed_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert source_hash(cls) == before  # an imported module stays as it was
    sources.cache_clear()
    assert source_hash(cls) != before


def test_a_built_in_stage_depends_on_its_package_and_its_imports() -> None:
    """The packages of other stages do not count."""
    from leporello.chunkers import FixedTokens

    modules = sources(FixedTokens).hashes
    assert {"leporello.chunkers.fixed_tokens", "leporello.core.records"} <= set(modules)
    others = ("leporello.readers.", "leporello.retrievers.")
    assert not any(name.startswith(others) for name in modules)


def test_finding_sources_imports_nothing() -> None:
    from leporello.readers import Seq2Seq

    before = set(sys.modules)
    source_hash(Seq2Seq)
    assert not {"torch", "transformers"} & (set(sys.modules) - before)


def test_an_unimported_module_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    """The files of an installed package are not hashed: its version identifies them."""
    from pydantic import BaseModel

    assert sources(BaseModel).hashes == {}
    assert set(sources(BaseModel).libraries.values()) == {frozenset({"pydantic"})}
    assert public_name(BaseModel) == "pydantic.main.BaseModel"


def test_lazy_imports_of_a_package_count() -> None:
    """Tasks load files, so their sources include the module of each file format."""
    assert {"leporello.loaders.pdf.pages", "leporello.loaders.html"} <= {*sources(JsonLines).hashes}
