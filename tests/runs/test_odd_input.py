"""Tests that odd documents and questions are answered or fail without affecting other examples."""

import json
from pathlib import Path
from typing import Any

import pytest
from odd_texts import Odd

from leporello import Failure
from leporello.api import Run, run
from leporello.engine.limits import Limits

ODD_TASKS = {
    "normal": {"class": "odd_texts.Odd", "odd": False},
    "mixed": {"class": "odd_texts.Odd"},
}


def run_tasks(folder: Path, pipeline: dict[str, Any], tasks: dict[str, Any]) -> Run:
    config = folder / "odd.yaml"
    config.write_text(json.dumps({"pipelines": {"p": pipeline}, "tasks": tasks}), encoding="utf-8")
    limits = Limits(max_active=500, window=500)
    options: Any = {"config": [config], "out": folder / "out", "limits": limits}
    return run(["p"], list(tasks), workers=0, cached=False, **options)


def outcome(result: Run, task: str, pipeline: str) -> dict[str, Any]:
    failed = {failure.example_id: failure for failure in result.failed(pipeline, task)}
    return {p.id: p for p in result.predictions(pipeline, task)} | failed


FAULTY = {
    "faulty": "its file is gone",
    "sound 1 faulty": "its evidence is not there",
    "sound 2 faulty": "its evidence is not there",
}


@pytest.mark.parametrize("reader", ["Lead", "BestSentence"])
def test_odd_examples_do_not_affect_others(tmp_path: Path, reader: str) -> None:
    """Every combiner accepts them; only faulty examples fail, with the task's message."""
    best = [{"class": "ReadEach", "keep": "best"}] if reader == "BestSentence" else []
    plain = [{"class": name} for name in ("MapReduce", "ReadEach", "Refine", "Stuff")]
    more = [{"class": "ReadEach", "keep": "vote"}, {"class": "Stuff", "fit": True}]
    pipeline = {
        "chunker": {"class": "FixedTokens", "size": 30},
        "retriever": {"sweep": [{"class": "BM25", "k": 2}, {"class": "All"}]},
        "reader": {"class": reader},
        "combiner": {"sweep": [*plain, *more, *best]},
    }
    result = run_tasks(tmp_path, pipeline, ODD_TASKS)
    points = {score.pipeline for score in result.results}
    assert len(points) == 2 * len([*plain, *more, *best])
    for point in points:
        mixed, normal = (outcome(result, task, point) for task in ("mixed", "normal"))
        failed = {name for name, row in mixed.items() if isinstance(row, Failure)}
        assert {name: (mixed[name].stage, mixed[name].error) for name in failed} == {
            name: ("task", fault) for name, fault in FAULTY.items()
        }
        assert len(mixed) == len(list(Odd().examples()))
        assert {name: mixed[name] for name in normal} == normal
        chosen = [row for name, row in mixed.items() if name.startswith("chosen")]
        assert {line for row in chosen for line in row.raw.split("\n")} <= {"x", "\u202e"}
