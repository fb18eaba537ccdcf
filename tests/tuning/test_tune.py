"""`tune`: what is best of a pipeline's choices, on documents chosen on and on those kept apart."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command_line import command, leporello, until

from leporello.config import load_config, load_space
from leporello.config.space import first
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
class Broken:
    def read(self, inputs):
        raise ValueError("torn")

    def count(self, texts):
        return [0 for _ in texts]
"""
HERE = ("tune", "mine", "--config", "mine.yaml", "--json")


def rows(documents: int, words: int, first: int = 0) -> str:
    """Returns documents whose answer is their first words."""
    names = [f"a{n} b{n} c{n} d{n} e{n} f{n} g{n}" for n in range(first, first + documents)]
    return "".join(
        json.dumps({"id": f"{n}", "document": text, "references": [" ".join(text.split()[:words])]})
        + "\n"
        for n, text in enumerate(names)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a config and a task of 36 documents, whose best answer has 3 words."""
    (tmp_path / "mine.yaml").write_text(CONFIG)
    (tmp_path / "broken.py").write_text(BROKEN)
    (tmp_path / "rows.jsonl").write_text(rows(36, 3))
    (tmp_path / "more.jsonl").write_text(rows(36, 5, 100))
    return tmp_path


def tuned(folder: Path, *options: str, arguments: tuple[str, ...] = HERE) -> dict[str, Any]:
    """Returns what a search tells."""
    found: dict[str, Any] = json.loads(leporello(*arguments, *options, folder=folder).stdout)
    return found


def test_the_best_choice_is_found_and_its_worth_is_told_on_documents_kept_apart(
    folder: Path,
) -> None:
    """A third of the documents is looked at once the search is over."""
    found = tuned(folder, "--task", "rows", "--budget", "20 runs")
    assert found["chosen"] == {"reader.words": "3"}
    assert (found["documents"], found["apart"], found["searches"]) == (24, 12, 1)
    assert (found["score"], found["estimate"]["value"], found["optimism"]) == (100.0, 100.0, 0.0)
    assert found["gain"]["value"] == found["apart_gain"]["value"] == 50.0
    assert found["stopped"] >= 1


def test_the_config_that_it_writes_runs_and_says_on_what_it_was_tuned(folder: Path) -> None:
    """In the table of `run` and of `compare`; on other documents it says nothing."""
    tuned(folder, "--task", "rows", "--budget", "20 runs", "--out", "best.yaml")
    files = ["--config", "mine.yaml", "--config", "best.yaml"]
    told = leporello("run", "mine-tuned", *files, "--workers", "0", "--out", "run", folder=folder)
    assert "tuned on 24 of these documents" in " ".join(told.stdout.split())
    compared = leporello("compare", "run", folder=folder).stdout
    assert "mine-tuned was tuned on some of these documents" in compared
    other = ["--task", "more", "--workers", "0", "--out", "other"]
    assert "tuned on" not in leporello("run", "mine-tuned", *files, *other, folder=folder).stdout
    record: Any = read_tree(folder / "best.yaml").plain()
    record = record["pipelines"]["mine-tuned"]["tuned"]
    assert record["budget"] == "20 runs"
    assert len(record["tasks"]["rows"]["documents"]) == 24


def test_where_documents_are_few_each_is_kept_apart_in_its_turn(folder: Path) -> None:
    """Five searches choose without a fifth of them each; the sixth looks at all."""
    (folder / "rows.jsonl").write_text(rows(10, 3))
    found = tuned(folder, "--task", "rows", "--budget", "60 runs")
    assert (found["documents"], found["apart"], found["searches"]) == (10, 10, 6)
    assert found["estimate"]["value"] == 100.0


def test_tasks_have_equal_weight(folder: Path) -> None:
    """The metric may be another one than the tasks' first."""
    options = ["--task", "rows", "--task", "more", "--metric", "exact_match", "--budget", "20 runs"]
    found = tuned(folder, *options)
    assert (found["score"], found["documents"], found["metrics"]) == (
        50.0, 48, {"rows": "exact_match", "more": "exact_match"},
    )  # fmt: skip


def test_numbers_are_chosen_from_ranges_and_stages_with_choices_of_their_own(folder: Path) -> None:
    """By logarithm where that is asked; a file and --set give choices that the YAML lacks."""
    (folder / "space.yaml").write_text("combiner: [Stuff, {class: ReadEach, keep: [vote, join]}]\n")
    _, space, shipped = load_space(
        [folder / "mine.yaml"], ["retriever.k=1,2"], "open", folder / "space.yaml"
    )
    assert sorted(space.check()) == [
        "combiner", "combiner:ReadEach.keep", "reader.words", "retriever.k",
    ]  # fmt: skip
    assert shipped.point(first)[0].stages["retriever"].params == {"k": 1}
    arguments = ("tune", "open", "--config", "mine.yaml", "--json", "--space", "space.yaml")
    found = tuned(folder, "--task", "rows", "--budget", "40 runs", arguments=arguments)
    assert found["score"] == 100.0
    assert found["chosen"]["reader.words"] == 3


def _results(folder: Path) -> dict[str, Any]:
    text: Any = read_tree(folder / "out.yaml").plain()
    tuned_: Any = text["pipelines"]["mine-tuned"]
    tuned_["tuned"].pop("seconds")
    return dict(tuned_)


def test_a_search_that_is_killed_goes_on_and_finds_the_same(folder: Path) -> None:
    """By a real kill, twice, and Ctrl-C with status 130; what was scored is not scored again."""
    line = [*HERE, "--task", "rows", "--budget", "12 runs", "--out", "out.yaml", "--no-cache"]
    sets = ["--set", "reader.words=1,2,3,4,5,6,7,8,9", "--set", "retriever.k=1,2,3"]
    kept = folder / "out"

    def scored() -> int:
        return len([*kept.rglob("*.json")])

    for number, sent in enumerate((signal.SIGKILL, signal.SIGINT, signal.SIGKILL)):
        process = subprocess.Popen(
            command(*line, *sets), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda n=number: scored() > 4 * (n + 1), process)  # type: ignore[misc]
        process.send_signal(sent)
        if process.wait() == 0:
            break
        assert process.returncode == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*/*/*.json")}
    leporello(*line, *sets, folder=folder)
    assert all(path.stat().st_mtime_ns == moment for path, moment in before.items())
    resumed = _results(folder)
    leporello(*line[:-3], "--out", "other/out.yaml", *sets, folder=folder)
    assert _results(folder / "other") == resumed


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["lead", "--task", "rows"], "lead leaves nothing to choose: give choices by --set"),
        (["mine", "--task", "row"], "there is no task 'row'; did you mean 'rows'"),
        (["mine", "--task", "rows", "--metric", "exact_mach"], "did you mean 'exact_match'"),
        (["mine", "--task", "rows", "--budget", "soon"], "must be a time, dollars or points: 30m"),
        (["mine", "--task", "rows", "--budget", "0 runs"], "too small for one point"),
        (["mine", "--task", "rows", "--budget", "0.01s"], "too small for one point: the pipeline"),
        (["mine", "--task", "rows", "--budget", "$1"], "the reader knows no prices"),
        (["mine", "--task", "rows", "--limit", "3"], "has 3 documents, too few"),
        (["mine", "--task", "rows", "--set", "retriever.k={range: [4, 1]}"],
         "mine.retriever.k: a range must begin with its low end, got [4, 1]"),
        (["mine", "--task", "rows", "--set", "retriever.k={range: [0, 4]}"],
         "mine.retriever.k: input should be greater than 0, got 0"),
        (["mine", "--task", "rows", "--out", "here"], "the config that is written: here.yaml"),
        (["mine", "--task", "rows", "--set", "reader={class: ./broken.py:Broken}", "--set",
          "retriever.k=1,2"], "24 of 24 examples failed before anything was chosen; the reader"),
        (["mine", "--task", "rows", "--set", "retriever.q=1,2"], "First has no parameter 'q'"),
        (["mine", "--task", "rows", "--set", "chunker={range: [1, 2]}"], "stage cannot be a range"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_before_any_work(folder: Path, options: list[str], told: str) -> None:
    """With what is meant, and what is allowed."""
    line = ["tune", *options, "--config", "mine.yaml"]
    done = leporello(*line, status=2, folder=folder)
    assert told in " ".join(done.stderr.split())


def test_a_run_takes_no_range_and_other_pipelines_of_the_file_run(folder: Path) -> None:
    """The fault stands where the range does."""
    done = leporello("run", "open", "--config", "mine.yaml", status=2, folder=folder)
    assert "mine.yaml:10: open.reader.words: only `tune` allows a range" in done.stderr
    assert load_config([folder / "mine.yaml"], (), ["mine"]).select(["mine@reader.words=3"])
