"""End-to-end tests of MuLD's question-answering baselines, on files in its format."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from row_files import write_rows
from tiny_models import save

from leporello.engine.results.serialization import calls_from_row

PLACES = ("harbour", "mill", "tower", "forest", "bridge", "market", "garden", "church")
QUESTION = "Who found the key in the {}?"
VARIANTS = ("", "-fit", "-each", "-dense", "-fusion")


def book(number: int) -> str:
    """Returns a text with one paragraph per place."""
    about = [
        f"In the {place} the wind blew all night. Person{number}{n} found the key in the {place}."
        f" Nobody in the {place} knew of it, and so the day went by as days do."
        for n, place in enumerate(PLACES)
    ]
    return "\n\n".join(about)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with data in MuLD's format and a tiny T5."""
    folder_path = tmp_path_factory.mktemp("muld")
    rows = [
        {"input": f"{QUESTION.format(place)}\n\n{book(n)}", "output": [f"Person{n}{p}", "someone"]}
        for n in range(2)
        for p, place in enumerate(PLACES[:2])
    ]
    for name in ("narrativeqa_test", "hotpotqa_validation"):
        write_rows(folder_path / f"data/muld/{name}.json.bz2", *rows)
    save("t5", folder_path / "t5")
    return folder_path


@pytest.fixture(scope="module")
def run_folder(folder: Path) -> Path:
    """Runs all T5 pipelines on both tasks, with a tiny model and small chunks.

    METEOR takes ten seconds to start, so that it scores only one pipeline of each task.
    """
    small = ("reader.max_input_tokens=256", "reader.max_new_tokens=6", "chunker.size=12")
    sets = [f"--set={setting}" for setting in (f"reader.model={folder / 't5'}", *small)]
    options: list[str | Path] = [*HERE, *sets, "--data", folder / "data", "--out", folder / "run"]
    names = [f"muld-{task}{v}" for v in VARIANTS for task in ("narrativeqa", "hotpotqa")]
    leporello("run", *names[:2], *options)
    leporello("run", *names[2:], *options, "--metric", "f1")
    return folder / "run"


def results(run_folder: Path, pipeline: str) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Returns the predictions of a pipeline, with their calls."""
    [rows] = run_folder.glob(f"{pipeline}/muld/*/predictions.jsonl")
    calls = read_lines(rows.with_name("calls.jsonl"))
    return [(r, calls_from_row(c["calls"])) for r, c in zip(read_lines(rows), calls, strict=True)]


@pytest.mark.parametrize("task", ["narrativeqa", "hotpotqa"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_answers_its_own_task(run_folder: Path, task: str, variant: str) -> None:
    rows = results(run_folder, f"muld-{task}{variant}")
    assert [len(row["hits"]) for row, _ in rows] == [10] * 4
    [plain], [varied] = (run_folder.glob(f"muld-{task}{v}/muld/*") for v in ("", variant))
    assert varied.name == plain.name


@pytest.mark.parametrize("task", ["narrativeqa", "hotpotqa"])
def test_answers_are_scored_as_in_the_paper(run_folder: Path, task: str) -> None:
    [metrics] = run_folder.glob(f"muld-{task}/muld/*/metrics.json")
    scores = json.loads(metrics.read_text())["scores"]
    assert {"bleu_1", "bleu_4", "meteor_coco", "rouge_l_coco"} <= scores.keys()


def test_chunks_are_read_best_first_after_the_question(
    folder: Path, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row, calls in results(run_folder, "muld-narrativeqa"):
        [call] = calls
        assert [tuple(p) for p in call["passages"]] == [tuple(h[:2]) for h in row["hits"]]
        scores = [score for *_, score in row["hits"]]
        assert all(a >= b for a, b in pairwise(scores))
        assert row["coverage"]["cut"] > 0
        assert row["coverage"]["selected"] == row["coverage"]["read"] + row["coverage"]["cut"]
    monkeypatch.setenv("LEPORELLO_DATA", str(folder / "data"))
    story = leporello("explain", run_folder, "test-0").stdout
    assert f"question: {QUESTION.format('harbour')}" in story
    assert "context: " in story
