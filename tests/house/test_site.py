"""Tests that the site builds, and that missing pages and descriptions fail the build."""

import importlib.util
from pathlib import Path

import pytest
from command_line import ROOT
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort, PluginError


@pytest.mark.integration
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    readers = (tmp_path / "reference" / "readers" / "index.html").read_text(encoding="utf-8")
    assert 'id="bestsentence"' in readers
    verbs = (tmp_path / "reference" / "command-line" / "index.html").read_text(encoding="utf-8")
    assert "--max-failures" in verbs
    assert 'id="cache-gc"' in verbs


@pytest.mark.integration
@pytest.mark.parametrize("text", ["[dead](nowhere.md)", "[dead](index.md#nowhere)"])
def test_a_dead_link_fails_the_build(text: str, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# One\n\n{text}\n", encoding="utf-8")
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {ROOT}/mkdocs.yml\nhooks: []\nnav: [index.md]\n", encoding="utf-8")
    with pytest.raises(Abort):
        build(load_config(str(config), strict=True))


def test_a_parameter_that_is_not_described_fails_the_build() -> None:
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "reference_pages.py")
    assert spec
    assert spec.loader
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    with pytest.raises(PluginError, match="Mine: not described: `k`"):
        pages.table("Mine", ("parameter", ""), [("`k`", "")])
