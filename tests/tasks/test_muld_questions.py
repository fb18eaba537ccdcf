"""End-to-end tests of MuLD's question-answering baselines, on files in its format."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from row_files import write_rows

from leporello.api import load_pipelines
from leporello.engine.results.serialization import calls_from_row
from leporello.tasks import Muld

PLACES = ("harbour", "mill", "tower", "forest", "bridge", "market", "garden", "church")
QUESTION = "Who found the key in the {}?"
VARIANTS = ("", "-fit", "-each", "-dense", "-fusion")


def book(number: int) -> str:
    about = [
        f"In the {place} the wind blew all night. Person{number}{n} found the key in the {place}."
        f" Nobody in the {place} knew of it, and so the day went by as days do."
        for n, place in enumerate(PLACES)
    ]
    return "\n\n".join(about)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[[str], str]) -> Path:
    """Data in MuLD's format, and a run of the T5 pipeline with a tiny model and small chunks."""
    place = tmp_path_factory.mktemp("muld")
    rows = [
        {"input": f"{QUESTION.format(place)}\n\n{book(n)}", "output": [f"Person{n}{p}", "someone"]}
        for n in range(2)
        for p, place in enumerate(PLACES[:2])
    ]
    write_rows(place / "data/muld/narrativeqa_test.json.bz2", *rows)
    small = ("reader.max_input_tokens=256", "reader.max_new_tokens=6", "chunker.size=12")
    sets = [f"--set={setting}" for setting in (f"reader.model={tiny('t5')}", *small)]
    options: list[str | Path] = [*HERE, *sets, "--data", place / "data", "--out", place / "run"]
    leporello("run", "muld-narrativeqa", *options)
    return place


@pytest.mark.parametrize("task", ["narrativeqa", "hotpotqa"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_answers_its_own_task(task: Any, variant: str) -> None:
    [point] = load_pipelines([]).pipelines[f"muld-{task}{variant}"]
    assert point.tasks == (f"muld/{task}",)
    assert {"bleu_coco", "meteor_coco", "rouge_l_coco"} <= {*Muld(task).metrics}


def test_chunks_are_read_best_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [file] = folder.glob("run/muld-narrativeqa/muld/*/predictions.jsonl")
    stored = [calls_from_row(row["calls"]) for row in read_lines(file.with_name("calls.jsonl"))]
    for row, [call] in zip(read_lines(file), stored, strict=True):
        assert len(row["hits"]) == 10
        assert [tuple(p) for p in call["passages"]] == [tuple(h[:2]) for h in row["hits"]]
        scores = [score for *_, score in row["hits"]]
        assert all(a >= b for a, b in pairwise(scores))
        assert row["coverage"]["cut"] > 0
        assert row["coverage"]["selected"] == row["coverage"]["read"] + row["coverage"]["cut"]
    scores = json.loads(file.with_name("metrics.json").read_text())["scores"]
    assert {"bleu_1", "bleu_4", "meteor_coco", "rouge_l_coco"} <= scores.keys()
    monkeypatch.setenv("LEPORELLO_DATA", str(folder / "data"))
    story = leporello("explain", folder / "run", "test-0").stdout
    assert f"question: {QUESTION.format('harbour')}" in story
    assert "context: " in story
