"""Notes: what stages tell of an example besides its result, in a run and outside one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import HERE, leporello, read_lines

from leporello.core.notes import collect_notes, note

PLUGIN = """
from dataclasses import dataclass
from leporello import Hit, Read, Span
from leporello.core.notes import note


@dataclass(frozen=True)
class Halves:
    def chunk(self, document):
        if len(document.text) < 40:
            note("too short to be divided")
            return [Span(0, len(document.text))]
        half = len(document.text) // 2
        return [Span(0, half), Span(half, len(document.text))]


@dataclass(frozen=True)
class Last:
    def retrieve(self, questions, chunks):
        if "whole" in questions:
            note("no half was chosen")
        return [[Hit(chunk, 1.0) for chunk in chunks[-1:]] for _ in questions]


@dataclass(frozen=True)
class Twice:
    def combine(self, example, hits):
        [output] = yield [Read(tuple(hit.chunk for hit in hits))]
        note("read twice")
        note("read twice")
        [output] = yield [Read((output.text,))]
        return output.text
"""
CONFIG = """
pipelines:
  mine:
    chunker: {class: "./plugin.py:Halves"}
    retriever: {class: "./plugin.py:Last"}
    reader: {class: Lead, words: 3}
    combiner: {class: "./plugin.py:Twice"}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
"""
SHORT = "too short to be divided"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a config, a plug-in and two documents."""
    rows = [
        {"id": "short", "document": "a few words", "question": "which?"},
        {"id": "long", "document": "many words " * 30, "question": "whole"},
    ]
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_keeps_and_tells_what_its_stages_noted(folder: Path, workers: int) -> None:
    """Each example has the notes of its own stages, once; the summary counts them."""
    config: list[str | Path] = ["--config", folder / "mine.yaml", "--workers", str(workers)]
    done = leporello("run", *HERE, "mine", "--task", "rows", *config, "--out", folder / "run")
    notes = {r["id"]: r["notes"] for r in read_lines(folder / "run/mine/rows/calls.jsonl")}
    assert notes == {
        "short": [SHORT, "read twice"],
        "long": ["no half was chosen", "read twice"],
    }
    assert "notes on 2 of 2 examples" in done.stdout
    assert "2x read twice" in done.stdout
    assert f"1x {SHORT}" in done.stdout
    told = leporello("explain", folder / "run", "short").stdout
    assert told.count(SHORT) == 1


def test_ask_tells_what_stages_noted(folder: Path) -> None:
    """Beside the answer, for people and for programs."""
    (folder / "short.txt").write_text("a few words")
    asked: list[str | Path] = ["ask", folder / "short.txt", "which?", "--pipeline", "mine"]
    config: list[str | Path] = ["--config", folder / "mine.yaml"]
    assert f"note: {SHORT}" in leporello(*asked, *config).stdout
    told = json.loads(leporello(*asked, *config, "--json").stdout)
    assert told["notes"] == [SHORT, "read twice"]


def test_outside_a_run_a_note_is_a_warning() -> None:
    """Whoever calls a stage from Python hears of it, too."""
    with pytest.warns(UserWarning, match="fell back"):
        note("fell back")


def test_notes_are_heard_once_and_only_within() -> None:
    """The same words twice are one note; what is told inside another hearing stays there."""
    with collect_notes() as outer:
        note("one")
        with collect_notes() as inner:
            note("two")
        note("one")
    assert (outer, inner) == (["one"], ["two"])
