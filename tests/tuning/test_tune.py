"""`tune`: finds the best choices of a pipeline, and scores them on documents kept apart."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import command, leporello, until, write_files

from leporello.config import load_config, load_space
from leporello.core.yaml.tree import read_tree

CONFIG = """
pipelines:
  mine:
    retriever: {class: First, k: 1}
    chunker: {class: Paragraphs, size: 20}
    reader: {class: Lead, words: [1, 2, 3, 5]}
    placement: {workers: 0}
  open:
    extends: mine
    reader: {class: Lead, words: {range: [1, 40], log: true}}
tasks:
  rows: {class: JsonLines, path: rows.jsonl, metrics: [f1, exact_match]}
  more: {class: JsonLines, path: more.jsonl, metrics: [exact_match]}
"""
BROKEN = """
from leporello.readers import Lead

class Broken(Lead):
    def read(self, inputs):
        raise ValueError("torn")
"""
HERE = ("tune", "mine", "--config", "mine.yaml", "--json")


def rows(documents: int, words: int, first: int = 0) -> list[dict[str, Any]]:
    names = [f"a{n} b{n} c{n} d{n} e{n} f{n} g{n}" for n in range(first, first + documents)]
    return [
        {"id": f"{n}", "document": text, "references": [" ".join(text.split()[:words])]}
        for n, text in enumerate(names)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a config and a task of 36 documents, whose best answer has 3 words."""
    files = {"mine.yaml": CONFIG, "broken.py": BROKEN}
    write_files(tmp_path, {**files, "rows.jsonl": rows(36, 3), "more.jsonl": rows(36, 5, 100)})
    return tmp_path


def tuned(folder: Path, *options: str, arguments: tuple[str, ...] = HERE) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(leporello(*arguments, *options, folder=folder).stdout)
    return result


def test_the_best_choice_is_found_and_scored_on_documents_kept_apart(folder: Path) -> None:
    result = tuned(folder, "--task", "rows", "--budget", "20 runs")
    assert result["chosen"] == {"reader.words": "3"}
    assert (result["documents"], result["apart"], result["searches"]) == (24, 12, 1)
    scores = (result["score"], result["estimate"]["value"], result["optimism"])
    assert scores == (100.0, 100.0, 0.0)
    assert result["gain"]["value"] == result["apart_gain"]["value"] == 50.0
    assert result["stopped"] >= 1


def test_the_written_config_runs_and_reports_the_documents_of_the_search(folder: Path) -> None:
    options = ["--task", "rows", "--budget", "20 runs", "--out", "best.yaml"]
    printed = " ".join(leporello(*HERE[:-1], *options, folder=folder).stdout.split())
    assert "which the search did not use; expect 100.00 " in printed  # not: optimism +0.00
    files = ["--config", "mine.yaml", "--config", "best.yaml"]
    options = [*files, "--workers", "0"]
    output = leporello("run", "mine-tuned", *options, "--out", "run", folder=folder).stdout
    assert "tuned on 24 of these documents" in " ".join(output.split())
    compared = leporello("compare", "run", folder=folder).stdout
    assert "mine-tuned was tuned on some of these documents" in compared
    options += ["--task", "more", "--out", "other"]
    assert "tuned on" not in leporello("run", "mine-tuned", *options, folder=folder).stdout
    record: Any = read_tree(folder / "best.yaml").plain()
    record = record["pipelines"]["mine-tuned"]["tuned"]
    assert record["budget"] == "20 runs"
    assert len(record["tasks"]["rows"]["documents"]) == 24


def test_few_documents_are_cross_validated(folder: Path) -> None:
    write_files(folder, {"rows.jsonl": rows(10, 3)})
    result = tuned(folder, "--task", "rows", "--budget", "60 runs")
    assert (result["documents"], result["apart"], result["searches"]) == (10, 10, 6)
    assert result["estimate"]["value"] == 100.0


def test_tasks_have_equal_weight(folder: Path) -> None:
    options = ["--task", "rows", "--task", "more", "--metric", "exact_match", "--budget", "20 runs"]
    result = tuned(folder, *options)
    assert (result["score"], result["documents"], result["metrics"]) == (
        50.0, 48, {"rows": "exact_match", "more": "exact_match"},
    )  # fmt: skip


def test_numbers_are_chosen_from_ranges_and_stages_from_lists(folder: Path) -> None:
    combiner = "combiner=Stuff,{class: ReadEach, keep: [vote, join]}"
    _, space, fixed = load_space([folder / "mine.yaml"], ["retriever.k=1,2", combiner], "open")
    assert sorted(space.check()) == [
        "combiner", "combiner:ReadEach.keep", "reader.words", "retriever.k",
    ]  # fmt: skip
    assert fixed.stages["retriever"].params == {"k": 1}
    arguments = ("tune", "open", "--config", "mine.yaml", "--json", "--set", combiner)
    result = tuned(folder, "--task", "rows", "--budget", "40 runs", arguments=arguments)
    assert result["score"] == 100.0
    assert result["chosen"]["reader.words"] == 3


def _results(folder: Path) -> dict[str, Any]:
    tree: Any = read_tree(folder / "out.yaml").plain()
    pipeline: Any = tree["pipelines"]["mine-tuned"]
    pipeline["tuned"].pop("seconds")
    return dict(pipeline)


def test_a_search_resumes_after_a_kill_with_the_same_result(folder: Path) -> None:
    line = [*HERE, "--task", "rows", "--budget", "12 runs", "--out", "out.yaml", "--no-cache"]
    sets = ["--set", "reader.words=1,2,3,4,5,6,7,8,9", "--set", "retriever.k=1,2,3"]
    scores = folder / "out"

    def scored() -> int:
        return len([*scores.rglob("*.json")])

    for number, sent in enumerate((signal.SIGKILL, signal.SIGINT)):
        process = subprocess.Popen(
            command(*line, *sets), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda n=number: scored() > 4 * (n + 1), process)  # type: ignore[misc]
        process.send_signal(sent)
        if process.wait() == 0:
            break
        assert process.returncode == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in scores.rglob("*/*/*.json")}
    leporello(*line, *sets, folder=folder)
    assert all(path.stat().st_mtime_ns == modified for path, modified in before.items())
    resumed = _results(folder)
    leporello(*line[:-3], "--out", "other/out.yaml", *sets, folder=folder)
    assert _results(folder / "other") == resumed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["lead", "--task", "rows"], "lead has no choices: give some by --set"),
        (["mine", "--task", "rows", "--metric", "exact_mach"], "did you mean 'exact_match'"),
        (["mine", "--task", "rows", "--budget", "soon"], "must be a time, dollars or points: 30m"),
        (["mine", "--task", "rows", "--budget", "0.001s"],
         "too small for one point: the search needs at least about"),
        (["mine", "--task", "rows", "--limit", "12", "--budget", "5 runs"],
         "needs at least 6 runs, as 6 searches share the budget"),
        (["mine", "--task", "rows", "--budget", "$1"], "the reader does not report prices"),
        (["mine", "--task", "rows", "--limit", "3"], "has 3 documents, too few"),
        (["mine", "--task", "rows", "--set", "retriever.k={range: [4, 1]}"],
         "mine.retriever.k: a range must begin with its low end, got [4, 1]"),
        (["mine", "--task", "rows", "--set", "retriever.k={range: [0, 4]}"],
         "mine.retriever.k: must be greater than 0, got 0"),
        (["mine", "--task", "rows", "--out", "here"], "must be a YAML file, such as here.yaml"),
        (["mine", "--task", "rows", "--set", "reader={class: ./broken.py:Broken}", "--set",
          "retriever.k=1,2"], "24 of 24 examples failed with the pipeline as declared; the reader"),
        (["mine", "--task", "rows", "--set", "chunker={range: [1, 2]}"], "stage cannot be a range"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_at_once(folder: Path, options: list[str], message: str) -> None:
    line = ["tune", *options, "--config", "mine.yaml"]
    result = leporello(*line, status=2, folder=folder)
    assert message in " ".join(result.stderr.split())


def test_a_run_takes_no_range_and_other_pipelines_of_the_file_run(folder: Path) -> None:
    result = leporello("run", "open", "--config", "mine.yaml", status=2, folder=folder)
    assert "mine.yaml:10: open.reader.words: only `tune` allows a range" in result.stderr
    assert load_config([folder / "mine.yaml"], (), ["mine"]).select(["mine@reader.words=3"])
