"""The source hash: a class's own file and every local module that it imports."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import leporello
from leporello.cache import source_code
from leporello.cache.source_code import public_name, source_hash, sources
from leporello.core.environment.classes import find_class
from leporello.core.protocols import KINDS
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


def test_a_package_without_an_init_is_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of modules counts like a package with a file of its own."""
    (tmp_path / "bare_parts").mkdir()
    (tmp_path / "bare_parts" / "one.py").write_text("from bare_parts.two import X\nclass C: ...\n")
    (tmp_path / "bare_parts" / "two.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    cls = importlib.import_module("bare_parts.one").C
    assert sorted(sources(cls).hashes) == ["bare_parts.one", "bare_parts.two"]


def test_what_is_there_for_a_type_checker_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports under TYPE_CHECKING are never run; those beside it are."""
    (tmp_path / "typed_part.py").write_text("X = 1\n")
    (tmp_path / "other_part.py").write_text("X = 1\n")
    (tmp_path / "checked.py").write_text(
        "import typing\nif typing.TYPE_CHECKING:\n    import typed_part, torch\n"
        "else:\n    import other_part\nclass C: ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    cls = importlib.import_module("checked").C
    assert sorted(sources(cls).hashes) == ["checked", "other_part"]
    assert sources(cls).libraries["checked"] == frozenset()


def test_the_hash_of_a_plug_in_does_not_tell_its_folder(tmp_path: Path) -> None:
    """The same file has the same hash wherever it lies; another has another."""
    classes = []
    for name, text in (("one", ""), ("two", ""), ("three", "# more\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "readers.py").write_text(f"class C: ...\n{text}")
        classes.append(find_class("readers.py:C", KINDS["reader"], tmp_path / name))
    first, second, third = map(source_hash, classes)
    assert first == second != third
    assert {public_name(cls) for cls in classes} == {"readers.py:C"}


def test_an_installed_class_depends_on_its_package() -> None:
    """The files of what is installed are not hashed: its version says what they are."""
    from pydantic import BaseModel

    assert sources(BaseModel).hashes == {}
    assert set(sources(BaseModel).libraries.values()) == {frozenset({"pydantic"})}
    assert public_name(BaseModel) == "pydantic.main.BaseModel"


def test_imports_of_our_modules_are_found_without_parsing_them_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The scan finds at least those that parsing finds; a docstring may show one more."""
    scanned = {path: imported_by(path) for path in Path(leporello.__file__).parent.rglob("*.py")}
    monkeypatch.setattr(source_code, "_OWN", "no package")
    parsed = {path: imported_by(path) for path in scanned}
    assert {
        path: found - scanned[path] for path, found in parsed.items() if found - scanned[path]
    } == {}
    assert sum(map(len, scanned.values())) < 1.01 * sum(map(len, parsed.values()))


def imported_by(path: Path) -> frozenset[str]:
    """Returns what a module of ours imports; the cache of contents is passed by."""
    parts = path.relative_to(Path(leporello.__file__).parents[1]).with_suffix("").parts
    found: frozenset[str] = source_code._imported.__wrapped__(
        path.read_bytes(), ".".join(parts), path.name
    )
    return found


def test_the_classes_of_a_package_that_imports_them_late_count() -> None:
    """Tasks load files, and each format's module is among their sources."""
    assert {"leporello.loaders.pdf.pages", "leporello.loaders.html"} <= {*sources(JsonLines).hashes}
