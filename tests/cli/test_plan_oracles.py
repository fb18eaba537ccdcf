"""`plan --ladder`: the command that runs a pipeline with oracles instead of its retriever."""

import shlex
import subprocess
from pathlib import Path

import pytest
from command_line import leporello, write_files

from leporello.analysis.oracle_baselines import oracle_sweep
from leporello.api import load_pipelines
from leporello.jobs.options import JobOptions

CONFIG = """
tasks:
  gold: {class: JsonLines, path: gold.jsonl, metrics: [f1]}
  answers: {class: JsonLines, path: answers.jsonl, metrics: [f1]}
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
TEXT = "one two three four five six"
ROW = {"id": "1", "document": TEXT, "question": "six", "references": ["six"]}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Returns a config with tasks that have evidence, or only references."""
    gold = {**ROW, "evidence": ["five six"]}
    write_files(tmp_path, {"gold.jsonl": [gold], "answers.jsonl": [ROW], "mine.yaml": CONFIG})
    return tmp_path / "mine.yaml"


def _points(config: Path, override: str, name: str = "mine") -> dict[str, str]:
    points = load_pipelines([config], [override], [name]).pipelines[name]
    return {p.name.partition("@")[2]: repr(p.build().retriever) for p in points}


def test_the_rungs_return_as_many_chunks_as_the_pipelines_retriever(config: Path) -> None:
    sweep = oracle_sweep(JobOptions(["mine"], config=[config]))
    assert not sweep.note
    points = _points(config, sweep.override)
    names = ["BM25", "Oracle", "OracleAnswer", "All", "Random", "First"]
    assert [*points] == [f"retriever={name}" for name in names]
    assert all("k=3" in shown for name, shown in points.items() if name != "retriever=All")


def test_the_command_contains_a_nested_retriever_unchanged(config: Path) -> None:
    sweep = oracle_sweep(JobOptions(["nested"], config=[config]))
    points = _points(config, sweep.override, "nested")
    retriever = load_pipelines([config]).pipelines["nested"][0].build().retriever
    assert points["retriever=Neighbours"] == repr(retriever)
    assert "k=2" in points["retriever=Oracle"]


def test_a_sweep_over_the_retriever_sweeps_the_rungs(config: Path) -> None:
    sweep = oracle_sweep(JobOptions(["mine"], config=[config], overrides=["retriever.k=1,2"]))
    retrievers = list(_points(config, sweep.override).values())
    assert sum("Oracle(k=" in retriever for retriever in retrievers) == 2
    assert len(retrievers) == 2 + 4 * 2 + 1


def test_a_retriever_without_k_is_noted(config: Path) -> None:
    sweep = oracle_sweep(JobOptions(["everything"], config=[config]))
    assert sweep.note == "the retriever has no k: the oracles use their default k"
    assert sweep.override.count('{"class": "All"}') == 1


def test_the_printed_command_runs(config: Path) -> None:
    options = ("--task", "answers", "--config", config, "--set", "chunker.size=3", "--limit", "1")
    out = config.parent / "out of it"
    plan = leporello("plan", "mine", "--ladder", *options, "--out", out)
    [line] = plan.stdout.splitlines()
    words = shlex.split(line)
    assert all(str(word) in words for word in (*options, out))
    process = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)  # noqa: S607 -- users paste it into a shell
    assert process.returncode == 0, process.stderr
    folders = {path.name for path in out.iterdir() if path.is_dir()} - {"journal"}
    names = ("BM25", "Oracle", "OracleAnswer", "All", "Random", "First")
    assert folders == {f"mine@retriever={name}" for name in names}
