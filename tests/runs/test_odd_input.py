"""Odd documents and questions: answered, or failed with a reason, and never at others' expense."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello, read_lines
from odd_texts import Odd
from tiny_models import save

from leporello import Document, Example, Failure, Read
from leporello.api import Run, run
from leporello.chunkers import FixedTokens, Lines, Paragraphs, Recursive, Sections, Sentences, Whole
from leporello.core.calls.stage_calls import divide, retrieve
from leporello.engine.limits import Limits
from leporello.readers import BestSentence, Lead
from leporello.readers.prompting.template import Template, passage_text
from leporello.readers.prompting.window import Window
from leporello.retrievers import BM25, All, First, Selected, TfIdf
from leporello.testing.texts import TEXTS

CHUNKERS: list[Any] = [
    FixedTokens(),
    FixedTokens(size=7, overlap=3),
    Lines(size=30),
    Lines(size=30, split_long=False),
    Paragraphs(),
    Paragraphs(size=30),
    Recursive(size=30, overlap=9),
    Sections(size=30),
    Sections(size=30, split_long=True),
    Sentences(size=30, overlap=1),
    Whole(),
]
RETRIEVERS: list[Any] = [TfIdf(), BM25(), First(), All(), Selected()]


# Nobody else's results change


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
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{task}.jsonl").write_text(lines, encoding="utf-8")
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


# Nothing takes more than its share


def times_of(characters: int, make: Callable[[int], str]) -> dict[str, float]:
    """Returns the processor seconds of everything that looks at a document's every character."""
    seconds = {}
    document = Document("d", make(characters))
    for chunker in CHUNKERS:
        before = time.process_time()
        chunks = divide(chunker, Document("d", document.text))
        seconds[repr(chunker)] = time.process_time() - before
    for retriever in RETRIEVERS:
        chunks = divide(FixedTokens(), Document("d", document.text))
        asked = [Example("e", chunks[0].document if chunks else document, "x where?")]
        before = time.process_time()
        retrieve(retriever, asked, chunks)
        seconds[repr(retriever)] = time.process_time() - before
    for reader in (Lead(), BestSentence()):
        read = Read((document.chunk(0, len(document.text)),), "x where?")
        before = time.process_time()
        reader.read([read])
        seconds[repr(reader)] = time.process_time() - before
    return seconds


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_takes_more_than_its_share_of_time(name: str) -> None:
    """Twenty times the text takes some twenty times as long; were it quadratic, 400 times."""
    tries = (slow_ones(TEXTS[name]) for _ in range(3))  # a pause for garbage is not there each time
    assert any(slow == {} for slow in tries)


def slow_ones(make: Callable[[int], str]) -> dict[str, tuple[float, float]]:
    """Returns the seconds for a short text and a long one, where the long one takes too many."""
    small, large = (times_of(characters, make) for characters in (3_000, 60_000))
    return {key: (small[key], large[key]) for key in small if large[key] > 100 * small[key] + 0.3}


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_ten_megabytes_take_ten_times_as_long_as_one(name: str) -> None:
    """Documents of the size that nobody should have are read at the pace of others."""
    small, large = (times_of(characters, TEXTS[name]) for characters in (1_000_000, 10_000_000))
    slow = {key: (small[key], large[key]) for key in small if large[key] > 30 * small[key] + 1}
    assert slow == {}


def test_a_book_is_split_in_time_that_grows_with_it() -> None:
    """A passage many times the window is read in parts, none of them looked for in the whole."""
    rendered: list[int] = []
    template = Template("{question} {context}")

    def counted(read: Read) -> str:
        prompt = template.render(read)
        rendered.append(len(prompt))
        return prompt

    window = Window(counted, lambda prompt: len(prompt.split()), 99, "split")
    effort = []
    for length in (7_000, 280_000):
        passage = Document("d", "a cat. " * (length // 7)).chunk(0, length)
        rendered.clear()
        parts = window.parts(Read((passage,), "why?"))
        effort.append(sum(rendered))
        assert sum(len(passage_text(part.passages[0])) for part in parts) == length
    assert effort[1] < 60 * effort[0]  # of forty times the text


# From files


def test_odd_files_leave_the_others_alone(tmp_path: Path) -> None:
    """Through the command line: status 1, one line a faulty example, the others as without it."""
    (tmp_path / "line.txt").write_text("word " * 200_000, encoding="utf-8")
    (tmp_path / "empty lines.txt").write_text("\n" * 1_000_000 + "last", encoding="utf-8")
    (tmp_path / "marks.md").write_text("\ufeff# \u202e\u2066\r\n\r\nx", encoding="utf-8")
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
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(text, encoding="utf-8")
    config = tmp_path / "odd.yaml"
    config.write_text("tasks: {odd: {class: JsonLines, path: rows.jsonl}}", encoding="utf-8")
    arguments = ("run", "best-sentence", "--task", "odd", "--config", config)
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
        "pipe.txt": "is no file but a pipe or a device",
        "/dev/zero": "is no file but a pipe or a device",
        ".": "is a folder; name one file",
    }
    assert failures.keys() == reasons.keys()
    for name, reason in reasons.items():
        line = paths.index(name) + 1 + (paths.index(name) >= 5)
        assert failures[name]["error"].startswith(f"rows.jsonl:{line}: document_path: ")
        assert reason in failures[name]["error"]
