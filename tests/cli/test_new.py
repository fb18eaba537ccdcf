"""`new` writes a package that passes its tests, installs, and runs by its class's short name."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from command_line import HERE, ROOT, leporello

from leporello.cli.new import package

KINDS = ("chunker", "enricher", "reader", "combiner", "loader", "task", "metric")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


def python(*arguments: str | Path, folder: Path, path: str | Path = "") -> str:
    """Runs Python in a folder outside the checkout; returns its output."""
    process = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), str(path)]))},
    )  # fmt: skip
    assert process.returncode == 0, f"{process.stdout}\n{process.stderr}"
    return process.stdout


def test_a_package_is_written_tested_installed_and_run(tmp_path: Path) -> None:
    leporello("new", "retriever", "SharedWords", folder=tmp_path)
    folder = tmp_path / "leporello-shared-words"
    refused = leporello("new", "retriever", "SharedWords", folder=tmp_path, status=2)
    assert "exists already: move it" in refused.stderr
    assert " passed" in python(*PYTEST, folder=folder)
    installed = tmp_path / "installed"
    pip = ("-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "-q")
    python(*pip, "--target", installed, folder, folder=tmp_path)
    here = partial(python, "-m", "leporello", folder=tmp_path, path=installed)
    listed = here("list", "SharedWords")
    assert "leporello-shared-words 0.1.0" in listed
    config = ("--config", folder / "shared_words.yaml", "shared_words")
    limits = ("--task", "sample", "--limit", "2", *HERE)
    here("run", *config, *limits)
    [written] = (tmp_path / "runs").rglob("run.yaml")
    assert "class: SharedWords" in written.read_text(encoding="utf-8")


def test_packages_of_other_kinds_pass_their_tests(tmp_path: Path) -> None:
    """The test above covers a package with a retriever."""
    for kind in KINDS:
        for file, text in package(kind, f"My{kind.capitalize()}").items():
            path = tmp_path / kind / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    places = os.pathsep.join(str(tmp_path / kind) for kind in KINDS)
    tests = [tmp_path / kind / "tests" for kind in KINDS]
    assert " passed" in python(*PYTEST, *tests, folder=tmp_path, path=places)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("retreiver", "Mine", "there is no kind 'retreiver'; did you mean 'retriever'"),
        ("reader", "9lives", "'9lives' is not a valid class name"),
        ("reader", "class", "'class' is not a valid class name"),
        ("reader", "../Mine", "is not a valid class name"),
        ("reader", "my_reader", "must begin with a capital letter; did you mean MyReader"),
        ("reader", "Lead", "a reader 'Lead' exists already"),
    ],
)
def test_names_are_checked_before_anything_is_written(
    kind: str, name: str, message: str, tmp_path: Path
) -> None:
    assert message in leporello("new", kind, name, folder=tmp_path, status=2).stderr
    assert not [*tmp_path.iterdir()]


CONFIG = """
pipelines:
  asks: {reader: {class: Endpoint, base_url: "http://127.0.0.1:9/v1", model: m, api_key: $NONE}}
  silent: {reader: {class: Endpoint, base_url: "http://127.0.0.1:9/v1", model: m, retries: 0}}
  gone: {reader: {class: Seq2Seq, model: ./no-model}}
  lost: {reader: {class: CausalLM, model: smollm2-135m-instruct, examples: ./none.jsonl, shots: 1}}
  unfit: {reader: {class: Lead}, combiner: {class: ReadEach, keep: best}}
  fine: {extends: best-sentence}
"""
PROBLEMS = (
    "asks: the environment has no $NONE",
    "silent: no connection to http://127.0.0.1:9/v1",
    "gone: model '",
    "lost: ",
    "unfit: the combiner failed: ",
    "fine: ok",
)


def test_check_tries_pipelines_on_a_tiny_document(tmp_path: Path) -> None:
    """One line per pipeline names what it lacks: a key, a server, a model, a file, scores."""
    config = tmp_path / "own.yaml"
    config.write_text(CONFIG, encoding="utf-8")
    lines = leporello("check", "--try", "--config", config, status=2).stdout.splitlines()
    assert len(lines) == len(PROBLEMS)
    assert all(line.startswith(start) for line, start in zip(lines, PROBLEMS, strict=True)), lines
    fine = leporello("check", "--try", "fine", "--config", config)
    assert fine.stdout == "fine: ok\n"
    assert "there is nothing to try" in leporello("check", "--try", status=2).stderr
