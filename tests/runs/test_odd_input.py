"""Tests that odd documents and questions are answered or fail without affecting other examples."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello, read_lines, write_files
from odd_texts import Odd
from tiny_models import save

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


LONG = {"long": "why? " * 3000, "longer": "x" * 15_000, "longest": "猫" * 15_000}


@pytest.mark.parametrize(("kind", "name"), [("Seq2Seq", "t5"), ("CausalLM", "chat")])
def test_a_question_longer_than_the_window_fails_alone(
    tmp_path: Path, kind: str, name: str
) -> None:
    """A question is never cut, for all values of `on_overflow`; other questions are read."""
    save(name, tmp_path / "model")
    model = {"class": kind, "model": str(tmp_path / "model"), "max_input_tokens": 160}
    reader = {**model, "on_overflow": ["fit", "truncate", "split", "error"], "max_new_tokens": 4}
    normal = [
        {"id": f"{document} {n}", "document": f"Document {document}. " * 20, "question": question}
        for document in "ab"
        for n, question in enumerate(("why?", "who?", ""))
    ]
    text = normal[0]["document"]
    long = [{"id": id_, "document": text, "question": question} for id_, question in LONG.items()]
    tasks = {}
    for task, rows in (("normal", normal), ("mixed", [normal[0], *long, *normal[1:]])):
        write_files(tmp_path, {f"{task}.jsonl": rows})
        tasks[task] = {"class": "JsonLines", "path": f"{task}.jsonl"}
    chunker = {"class": "FixedTokens", "size": 9}
    result = run_tasks(tmp_path, {"chunker": chunker, "reader": {**reader, "device": "cpu"}}, tasks)
    for point in {score.pipeline for score in result.results}:
        mixed, expected = (outcome(result, task, point) for task in ("mixed", "normal"))
        for id_ in LONG:
            failure = mixed.pop(id_)
            assert failure.stage == "reader"
            assert re.search(r"have \d+ tokens, .* they are never cut", failure.error)
        words = [{id_: _words(p) for id_, p in rows.items()} for rows in (mixed, expected)]
        assert words[0] == words[1]


def _words(outcome: Any) -> tuple[Any, ...]:
    """Returns the fields that a batch's rounding does not change."""
    if isinstance(outcome, Failure):  # passages may exceed the input window
        assert "and on_overflow is 'error'" in outcome.error
        return (outcome.stage, outcome.error)
    return (outcome.prediction, outcome.read)


def test_odd_files_do_not_affect_other_examples(tmp_path: Path) -> None:
    """On the command line, the status is 1 and each faulty example is one line in failures."""
    files = {"line.txt": "word " * 200_000, "empty lines.txt": "\n" * 1_000_000 + "last"}
    files |= {"marks.md": "\ufeff# \u202e\u2066\r\n\r\nx"}
    files |= {"odd.yaml": "tasks: {odd: {class: JsonLines, path: rows.jsonl}}"}
    (tmp_path / "nul.txt").write_bytes(b"\0\1\2a\xff" * 9000)
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9" * 9000)
    (tmp_path / "blank.txt").write_bytes(b" \r\n\t" * 9000)
    os.mkfifo(tmp_path / "pipe.txt")
    paths = ["gone.txt", "line.txt", "nul.txt", "empty lines.txt", "latin.txt", "marks.md"]
    paths += ["blank.txt", "pipe.txt", "/dev/zero", "."]
    rows = [
        {"id": path, "document_path": path, "question": "which word is last?"} for path in paths
    ]
    rows.insert(5, {"id": "inline", "document": "\0\u2067 last. " * 9, "question": "\u202e\0"})
    write_files(tmp_path, {**files, "rows.jsonl": rows})
    arguments = ("run", "best-sentence", "--task", "odd", "--config", tmp_path / "odd.yaml")
    process = leporello(*arguments, "--out", tmp_path / "out", status=1)
    assert "4 of 10 documents' files cannot be read" in process.stderr
    results = tmp_path / "out" / "best-sentence" / "odd"
    predictions = {
        row["id"]: row["prediction"] for row in read_lines(results / "predictions.jsonl")
    }
    assert list(predictions) == [
        "line.txt", "empty lines.txt", "latin.txt", "inline", "marks.md"
    ]  # fmt: skip
    assert predictions["empty lines.txt"] == "last"
    failures = {row["id"]: row for row in read_lines(results / "failures.jsonl")}
    assert {row["stage"] for row in failures.values()} == {"task"}
    reasons = {
        "gone.txt": "there is no such file",
        "nul.txt": "it looks like binary data",
        "blank.txt": "the file has no text",
        "pipe.txt": "is a pipe or a device",
        "/dev/zero": "is a pipe or a device",
        ".": "is a folder; name one file",
    }
    assert failures.keys() == reasons.keys()
    for name, reason in reasons.items():
        line = paths.index(name) + 1 + (paths.index(name) >= 5)
        assert failures[name]["error"].startswith(f"rows.jsonl:{line}: document_path: ")
        assert reason in failures[name]["error"]
