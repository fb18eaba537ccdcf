"""Tests of built-in declarations, and of messages about broken ones."""

import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from leporello.config import built_in, load_config
from leporello.config.reference import catalogue
from leporello.config.reference.schema import schema
from leporello.core.errors import ConfigError, UserError
from leporello.core.yaml.tree import read_tree

FILES = built_in.built_in_files()
CACHED = (
    built_in.built_in_path, built_in.built_in_files, built_in.built_in_names,
    built_in.built_in_tree,
)  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Installs a copy of the built-in files, and returns its folder."""
    folder = tmp_path / "installed"
    shutil.copytree(FILES[0].parent / "papers", folder / "papers")
    shutil.copy(FILES[0], folder)
    monkeypatch.setattr(built_in, "built_in_path", lambda: folder / "pipelines.yaml")
    for function in CACHED:
        function.cache_clear()
    yield folder
    for function in CACHED:
        function.cache_clear()


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
def test_the_table_of_names_is_that_of_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    """The table must be written again after a built-in file changes."""
    runpy.run_module("leporello.config.reference.catalogue", run_name="__main__")
    table = FILES[0].parent / "papers" / "names.json"
    assert capsys.readouterr().out == table.read_text("utf-8")


def test_built_in_declarations_have_no_faults() -> None:
    """The test checks all of them; commands check only those that they use."""
    config = load_config()
    config.check_all()
    for declared in (config.pipelines, config.tasks, config.suites):
        assert [*declared.ready] == [*declared]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_built_in_file_matches_the_schema(file: Path) -> None:
    validator = Draft202012Validator(schema())
    assert [error.message for error in validator.iter_errors(read_tree(file).plain())] == []


def _paper(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "papers/shuffle_test.yaml").write_text(text)


def _select() -> object:
    return load_config().select(["shuffle-gpt2-code"])


def _extend() -> object:
    return load_config([{"pipelines": {"mine": {"extends": "shuffle-gpt2"}}}])


ENTRY = "papers/names.json lists: run `make names`"


@pytest.mark.parametrize(
    ("text", "call", "message"),
    [
        ("pipelines: [", _select, "shuffle_test.yaml:1: not valid YAML"),
        ("", _select, f"has no entry 'shuffle-gpt2-code', which {ENTRY}"),
        (
            "pipelines: {shuffle-gpt2-code: {extends: shuffle-gpt2}}",
            _select,
            f"shuffle_test.yaml: pipelines has no entry 'shuffle-gpt2', which {ENTRY}",
        ),
        ("pipelines: {shuffle-gpt2: 3}", _extend, ENTRY),
    ],
)
def test_a_built_in_file_that_lacks_a_listed_name_is_an_error(
    copy: Path, text: str, call: Callable[[], object], message: str
) -> None:
    _paper(text)(copy)
    with pytest.raises(UserError) as caught:
        call()
    assert message in str(caught.value)


def test_a_broken_file_matters_only_if_its_names_are_used(copy: Path) -> None:
    file = copy / "papers/ours.yaml"
    file.write_text(file.read_text("utf-8").replace("size: 100}", "sice: 100}"), "utf-8")
    _paper("pipelines: [")(copy)
    config = load_config()
    assert config.select(["lead"])
    with pytest.raises(ConfigError, match=r"ours.yaml:8: tables.chunker.sice: Rows has no"):
        config.select(["tables"])


def test_the_table_is_built_from_the_files_and_not_from_the_previous_table(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise pipelines could not be renamed."""
    file = copy / "papers/ours.yaml"
    file.write_text(file.read_text("utf-8").replace("  code:", "  source:"), "utf-8")
    monkeypatch.setattr(catalogue, "built_in_path", built_in.built_in_path)
    rows: Any = catalogue.names_table()["pipelines"]
    assert rows["source"]["file"] == "papers/ours.yaml"
    assert "code" not in rows
