"""Odd documents and questions: answered, or failed with a reason, and never at others' expense."""

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
    "sound": {"class": "odd_texts.Odd", "odd": False},
    "mixed": {"class": "odd_texts.Odd"},
}


def ran(folder: Path, pipeline: dict[str, Any], tasks: dict[str, Any]) -> Run:
    """Runs a pipeline on two tasks."""
    config = folder / "odd.yaml"
    config.write_text(json.dumps({"pipelines": {"p": pipeline}, "tasks": tasks}), encoding="utf-8")
    limits = Limits(max_active=500, window=500)
    given: Any = {"config": [config], "out": folder / "out", "limits": limits}
    return run(["p"], list(tasks), workers=0, cached=False, **given)


def outcome(done: Run, task: str, pipeline: str) -> dict[str, Any]:
    """Returns the predictions and failures of a pipeline on a task, by the examples' ids."""
    failed = {failure.example_id: failure for failure in done.failed(pipeline, task)}
    return {p.id: p for p in done.predictions(pipeline, task)} | failed


FAULTY = {
    "faulty": "its file is gone",
    "sound 1 faulty": "its evidence is not there",
    "sound 2 faulty": "its evidence is not there",
}


@pytest.mark.parametrize("reader", ["Lead", "BestSentence"])
def test_odd_examples_are_answered_and_leave_the_others_alone(tmp_path: Path, reader: str) -> None:
    """Every combiner takes them; only what is at fault fails, as its task says."""
    best = [{"class": "ReadEach", "keep": "best"}] if reader == "BestSentence" else []
    named = [{"class": name} for name in ("MapReduce", "ReadEach", "Refine", "Stuff")]
    more = [{"class": "ReadEach", "keep": "vote"}, {"class": "Stuff", "fit": True}]
    pipeline = {
        "chunker": {"class": "FixedTokens", "size": 30},
        "retriever": {"sweep": [{"class": "BM25", "k": 2}, {"class": "All"}]},
        "reader": {"class": reader},
        "combiner": {"sweep": [*named, *more, *best]},
    }
    done = ran(tmp_path, pipeline, ODD_TASKS)
    points = {result.pipeline for result in done.results}
    assert len(points) == 2 * len([*named, *more, *best])
    for point in points:
        mixed, sound = (outcome(done, task, point) for task in ("mixed", "sound"))
        failed = {name for name, found in mixed.items() if isinstance(found, Failure)}
        assert {name: (mixed[name].stage, mixed[name].error) for name in failed} == {
            name: ("task", fault) for name, fault in FAULTY.items()
        }
        assert len(mixed) == len(list(Odd().examples()))
        assert {name: mixed[name] for name in sound} == sound
        chosen = [found for name, found in mixed.items() if name.startswith("chosen")]
        assert {line for found in chosen for line in found.raw.split("\n")} <= {"x", "\u202e"}


LONG = {"long": "why? " * 3000, "longer": "x" * 15_000, "longest": "猫" * 15_000}


@pytest.mark.parametrize(("kind", "name"), [("Seq2Seq", "t5"), ("CausalLM", "chat")])
def test_a_question_longer_than_the_window_fails_alone(
    tmp_path: Path, kind: str, name: str
) -> None:
    """Whatever is done with passages that do not fit, a question is never cut; others are read."""
    save(name, tmp_path / "model")
    model = {"class": kind, "model": str(tmp_path / "model"), "max_input_tokens": 160}
    reader = {**model, "on_overflow": ["fit", "truncate", "split", "error"], "max_new_tokens": 4}
    sound = [
        {"id": f"{document} {number}", "document": f"Document {document}. " * 20, "question": asked}
        for document in "ab"
        for number, asked in enumerate(("why?", "who?", ""))
    ]
    long = [{"id": id_, "document": sound[0]["document"], "question": q} for id_, q in LONG.items()]
    tasks = {}
    for task, rows in (("sound", sound), ("mixed", [sound[0], *long, *sound[1:]])):
        write_files(tmp_path, {f"{task}.jsonl": rows})
        tasks[task] = {"class": "JsonLines", "path": f"{task}.jsonl"}
    chunker = {"class": "FixedTokens", "size": 9}
    done = ran(tmp_path, {"chunker": chunker, "reader": {**reader, "device": "cpu"}}, tasks)
    for point in {result.pipeline for result in done.results}:
        found, expected = (outcome(done, task, point) for task in ("mixed", "sound"))
        for id_ in LONG:
            failure = found.pop(id_)
            assert failure.stage == "reader"
            assert re.search(r"alone take \d+ tokens .* they are never cut", failure.error)
        kept = [{id_: _words(p) for id_, p in rows.items()} for rows in (found, expected)]
        assert kept[0] == kept[1]


def _words(found: Any) -> tuple[Any, ...]:
    """Returns what does not depend on a batch's rounding; here passages may not fit the window."""
    if isinstance(found, Failure):
        assert "and on_overflow is 'error'" in found.error
        return (found.stage, found.error)
    return (found.prediction, found.read)


def test_odd_files_leave_the_others_alone(tmp_path: Path) -> None:
    """Through the command line: status 1, one line a faulty example, the others as without it."""
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
    done = leporello(*arguments, "--out", tmp_path / "out", status=1)
    assert "4 of 10 documents' files cannot be read" in done.stderr
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
