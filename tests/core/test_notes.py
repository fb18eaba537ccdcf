"""Notes that stages report on an example, within runs and outside them."""

import json
from pathlib import Path

import pytest
from command_line import leporello, read_lines, write_files

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
    rows = [
        {"id": "short", "document": "a few words", "question": "which?"},
        {"id": "long", "document": "many words " * 30, "question": "whole"},
    ]
    write_files(tmp_path, {"plugin.py": PLUGIN, "mine.yaml": CONFIG, "rows.jsonl": rows})
    return tmp_path


def test_a_run_stores_and_shows_notes(folder: Path) -> None:
    config: list[str | Path] = ["--config", folder / "mine.yaml", "--workers", "2"]
    process = leporello("run", "mine", "--task", "rows", *config, "--out", folder / "run")
    notes = {r["id"]: r["notes"] for r in read_lines(folder / "run/mine/rows/statistics.jsonl")}
    assert notes == {"short": [SHORT, "read twice"], "long": ["no half was chosen", "read twice"]}
    assert "notes on 2 of 2 examples" in process.stdout
    assert "2x read twice" in process.stdout
    assert f"1x {SHORT}" in process.stdout
    output = leporello("explain", folder / "run", "short").stdout
    assert output.count(SHORT) == 1


def test_ask_shows_notes(folder: Path) -> None:
    (folder / "short.txt").write_text("a few words")
    command: list[str | Path] = ["ask", folder / "short.txt", "which?", "--pipeline", "mine"]
    config: list[str | Path] = ["--config", folder / "mine.yaml"]
    assert f"note: {SHORT}" in leporello(*command, *config).stdout
    answer = json.loads(leporello(*command, *config, "--json").stdout)
    assert answer["notes"] == [SHORT, "read twice"]


def test_outside_a_run_a_note_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="fell back"):
        note("fell back")


def test_notes_are_collected_once_in_the_innermost_block() -> None:
    """The same words twice are one note; an outer block does not receive the notes of an inner."""
    with collect_notes() as outer:
        note("one")
        with collect_notes() as inner:
            note("two")
        note("one")
    assert (outer, inner) == (["one"], ["two"])
