"""`plan --ladder`: the command that runs a pipeline with oracles in its retriever's place."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from command_line import leporello

from leporello.analysis.oracle_baselines import oracle_sweep
from leporello.api import load_pipelines
from leporello.jobs.options import JobOptions

CONFIG = """
tasks:
  gold: {class: JsonLines, path: gold.jsonl, metrics: [f1]}
  answers: {class: JsonLines, path: answers.jsonl, metrics: [f1]}
  bare: {class: JsonLines, path: bare.jsonl}
pipelines:
  mine:
    tasks: [gold]
    chunker: {class: FixedTokens, size: 2}
    retriever: {class: BM25, k: 3}
    reader: {class: FixedAnswer, answer: it's}
  nested:
    extends: mine
    retriever:
      class: Neighbours
      retriever: {class: Fusion, k: 2, retrievers: [{class: BM25, k: 9}, {class: First}]}
  everything: {extends: mine, retriever: {class: All}}
"""
ROW = {"id": "1", "document": "one two three four five six", "question": "six"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Tasks with evidence, with references only, and with neither."""
    known = {"gold": {"references": ["six"], "evidence": ["five six"]}, "answers": {}, "bare": {}}
    known["answers"] = {"references": ["six"]}
    for name, gold in known.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({**ROW, **gold}) + "\n")
    path = tmp_path / "mine.yaml"
    path.write_text(CONFIG)
    return path


def _points(config: Path, override: str, name: str = "mine") -> dict[str, str]:
    points = load_pipelines([config], [override], [name]).pipelines[name]
    return {p.name.partition("@")[2]: repr(p.build().retriever) for p in points}


def test_the_rungs_get_as_many_chunks_as_the_pipelines_own_retriever(config: Path) -> None:
    """They are points of one sweep, named by their class."""
    found = oracle_sweep(JobOptions(["mine"], config=[config]))
    assert found.notes == ()
    points = _points(config, found.override)
    names = ["BM25", "Oracle", "OracleAnswer", "All", "Random", "First"]
    assert [*points] == [f"retriever={name}" for name in names]
    assert all("k=3" in shown for name, shown in points.items() if name != "retriever=All")


def test_a_nested_retriever_stands_in_the_command_as_in_the_file(config: Path) -> None:
    """Its k is that of the outermost part that has one."""
    found = oracle_sweep(JobOptions(["nested"], config=[config]))
    points = _points(config, found.override, "nested")
    own = load_pipelines([config]).pipelines["nested"][0].build().retriever
    assert points["retriever=Neighbours"] == repr(own)
    assert "k=2" in points["retriever=Oracle"]


def test_a_sweep_over_the_retriever_sweeps_the_rungs(config: Path) -> None:
    """`--set` is heeded; two values of k give two of each rung."""
    found = oracle_sweep(JobOptions(["mine"], config=[config], overrides=["retriever.k=1,2"]))
    shown = list(_points(config, found.override).values())
    assert sum("Oracle(k=" in each for each in shown) == 2
    assert len(shown) == 2 + 4 * 2 + 1


def test_a_rung_without_its_gold_is_left_out(config: Path) -> None:
    """If none of the tasks has it; what the retriever does not say is told too."""
    found = oracle_sweep(JobOptions(["mine"], ["answers"], config=[config]))
    assert found.notes == ("Oracle is left out: no example of answers has gold evidence",)
    assert '{"class": "Oracle",' not in found.override
    assert "OracleAnswer" in found.override
    found = oracle_sweep(JobOptions(["mine"], ["bare"], config=[config]))
    assert [note.split()[0] for note in found.notes] == ["Oracle", "OracleAnswer"]
    assert oracle_sweep(JobOptions(["mine"], ["bare", "gold"], config=[config])).notes == ()
    found = oracle_sweep(JobOptions(["everything"], config=[config]))
    assert found.notes == ("the retriever has no k: the oracles use their default k",)
    assert found.override.count('{"class": "All"}') == 1


def test_the_printed_command_runs(config: Path) -> None:
    """As it is printed, from a shell, with all that was given; notes are no part of it."""
    given = ("--task", "answers", "--config", config, "--set", "chunker.size=3", "--limit", "1")
    out = config.parent / "out of it"
    told = leporello("plan", "mine", "--ladder", *given, "--out", out)
    assert "left out" in told.stderr
    [line] = told.stdout.splitlines()
    words = shlex.split(line)
    assert all(str(word) in words for word in (*given, out))
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)  # noqa: S607 -- the shell of whoever copies it
    assert done.returncode == 0, done.stderr
    made = {path.name for path in out.iterdir() if path.is_dir()} - {"journal"}
    names = ("BM25", "OracleAnswer", "All", "Random", "First")
    assert made == {f"mine@retriever={name}" for name in names}
