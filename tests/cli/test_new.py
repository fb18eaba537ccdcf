"""`new` writes a package whose tests pass, which is installed and run by its short name."""

from __future__ import annotations

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
    """Runs Python in a folder, away from the checkout; returns what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), str(path)]))},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_package_is_written_tested_installed_and_run(tmp_path: Path) -> None:
    """The tests pass before it is installed too; nothing is ever written over."""
    leporello("new", "retriever", "SharedWords", folder=tmp_path)
    folder = tmp_path / "leporello-shared-words"
    told = leporello("new", "retriever", "SharedWords", folder=tmp_path, status=2)
    assert "is there already, and is left as it is" in told.stderr
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


def test_what_is_written_of_other_kinds_passes_its_tests(tmp_path: Path) -> None:
    """The kit says so; that of a retriever is above."""
    for kind in KINDS:
        for place, text in package(kind, f"My{kind.capitalize()}").items():
            path = tmp_path / kind / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    places = os.pathsep.join(str(tmp_path / kind) for kind in KINDS)
    tests = [tmp_path / kind / "tests" for kind in KINDS]
    assert " passed" in python(*PYTEST, *tests, folder=tmp_path, path=places)


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        ("retreiver", "Mine", "there is no kind 'retreiver'; did you mean 'retriever'"),
        ("reader", "9lives", "'9lives' is no name of a class"),
        ("reader", "class", "'class' is no name of a class"),
        ("reader", "../Mine", "is no name of a class"),
        ("reader", "my_reader", "must begin with a capital, as classes do; did you mean MyReader"),
        ("reader", "Lead", "there is a reader 'Lead' already"),
    ],
)
def test_names_are_checked_before_anything_is_written(
    kind: str, name: str, told: str, tmp_path: Path
) -> None:
    """What is wrong is told with what is likely meant."""
    assert told in leporello("new", kind, name, folder=tmp_path, status=2).stderr
    assert not [*tmp_path.iterdir()]


OWN = """
pipelines:
  asks: {reader: {class: Endpoint, base_url: "http://127.0.0.1:9/v1", model: m, api_key: $NONE}}
  silent: {reader: {class: Endpoint, base_url: "http://127.0.0.1:9/v1", model: m, retries: 0}}
  gone: {reader: {class: Seq2Seq, model: ./no-model}}
  lost: {reader: {class: CausalLM, model: smollm2-135m-instruct, examples: ./none.jsonl, shots: 1}}
  unfit: {reader: {class: Lead}, combiner: {class: ReadEach, keep: best}}
  fine: {extends: best-sentence}
"""
LACKS = (
    "asks: the environment has no $NONE",
    "silent: no connection to http://127.0.0.1:9/v1",
    "gone: model '",
    "lost: ",
    "unfit: the combiner failed: ",
    "fine: ok",
)


def test_check_tries_pipelines_on_a_tiny_document(tmp_path: Path) -> None:
    """A line each says what it lacks: a key, a server, a model, a file, a reader with scores."""
    own = tmp_path / "own.yaml"
    own.write_text(OWN, encoding="utf-8")
    lines = leporello("check", "--try", "--config", own, status=2).stdout.splitlines()
    assert len(lines) == len(LACKS)
    assert all(line.startswith(start) for line, start in zip(lines, LACKS, strict=True)), lines
    one = leporello("check", "--try", "fine", "--config", own)
    assert one.stdout == "fine: ok\n"
    assert "there is nothing to try" in leporello("check", "--try", status=2).stderr
