"""End-to-end tests of MuLD's subtitles and the user's subtitle files, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from row_files import write_rows
from tiny_models import save

from leporello.engine.results.serialization import calls_from_row

FILMS = (
    "Hello.\n- Who is it?\n\nIt is me, and it is cold.\n",
    "Go.\r\nNow!\r\n\r\n  - Where?",
    "one line that is far longer than a chunk of it may be, and goes on and on\nand another",
)
SRT = (
    "1\n00:00:01,000 --> 00:00:02,000\n<i>Hello.</i>\n\n"
    "2\n00:00:03,000 --> 00:00:04,000  X1:1\n- Who is it?\n- Me.\n"
)
VTT = "WEBVTT\n\nNOTE mine\n\n00:01.000 --> 00:02.000 align:start\nHello &amp; go.\n"
# A task without METEOR, which needs Java; and a reader of capitals, which may lose line breaks.
PLUG_INS = """\
from dataclasses import dataclass

from leporello import Output
from leporello.tasks import Muld


class Quick(Muld):
    metrics = ("f1",)


@dataclass(frozen=True)
class Shout:
    breaks: bool = True

    def read(self, inputs):
        texts = ["".join(passage.text for passage in read.passages).upper() for read in inputs]
        return [Output(text if self.breaks else " ".join(text.split())) for text in texts]

    def count(self, texts):
        return [len(text.split()) for text in texts]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with a split in MuLD's format, a config and a tiny T5."""
    save("t5", tmp_path / "t5")
    rows = ({"input": film, "output": film.splitlines()} for film in FILMS)
    write_rows(tmp_path / "data/muld/opensubtitles_test.json.bz2", *rows)
    (tmp_path / "mine.py").write_text(PLUG_INS, encoding="utf-8")
    (tmp_path / "a.srt").write_bytes(b"\xef\xbb\xbf" + SRT.replace("\n", "\r\n").encode())
    (tmp_path / "a.vtt").write_text(VTT, encoding="utf-8")
    rows_of_files = [
        {"id": "srt", "document_path": "a.srt"},
        {"id": "vtt", "document_path": "a.vtt"},
        {"id": "row", "document": SRT},
        {"id": "plain", "document": "No subtitles.\n"},
    ]
    write_rows(tmp_path / "files.jsonl", *rows_of_files)
    config: dict[str, Any] = {
        "pipelines": {
            **{
                name: {
                    "extends": f"muld-opensubtitles{suffix}",
                    "chunker": {"tokenizer": "./t5"},
                    "reader": {"model": "./t5", "max_new_tokens": 6, "device": "cpu"},
                }
                for name, suffix in (("tiny", ""), ("tiny-lines", "-lines"))
            },
            "shout": {
                "chunker": {"class": "Lines", "size": 6},
                "reader": {"class": "./mine.py:Shout", "breaks": [True, False]},
                "combiner": {"class": "LineByLine"},
            },
            "files": {
                "chunker": {"class": "Lines"},
                "reader": {"class": "./mine.py:Shout"},
                "combiner": {"class": "LineByLine", "cues": True},
            },
        },
        "tasks": {
            "films": {"class": "./mine.py:Quick", "name": "opensubtitles"},
            "files": {"class": "JsonLines", "path": "files.jsonl"},
        },
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def ran(folder: Path, pipeline: str, task: str, status: int = 0) -> list[list[dict[str, Any]]]:
    """Runs a pipeline on a task; returns the predictions of each point."""
    out = ("--data", folder / "data", "--config", folder / "mine.yaml", "--out", folder / "out")
    leporello("run", *HERE, pipeline, "--task", task, *out, status=status)
    return [read_lines(p) for p in sorted((folder / "out").glob("*/**/predictions.jsonl"))]


def passages(folder: Path, pipeline: str) -> list[str]:
    """Returns the texts that were read of the first film, all in the first round."""
    [row, *_] = read_lines(next((folder / "out").glob(f"{pipeline}/**/calls.jsonl")))
    calls = calls_from_row(row["calls"])
    assert {call["round"] for call in calls} == {0}
    return [FILMS[0][start:end] for call in calls for start, end in call["passages"]]


def test_the_pipeline_of_the_paper_joins_chunks_of_complete_lines(folder: Path) -> None:
    [rows] = ran(folder, "tiny", "films")
    assert passages(folder, "tiny") == [FILMS[0].strip()]
    assert all(row["coverage"]["selected"] >= 0.9 * len(row["raw"]) for row in rows)


def test_line_by_line_keeps_lines_in_their_places(folder: Path) -> None:
    [rows] = ran(folder, "tiny-lines", "films")
    for film, row in zip(FILMS, rows, strict=True):
        lines, originals = row["raw"].splitlines(keepends=True), film.splitlines(keepends=True)
        assert len(lines) == len(originals)
        for line, before in zip(lines, originals, strict=True):
            assert line.endswith(before[len(before.rstrip("\r\n")) :])
            assert before.strip() or not line.strip()
        assert row["coverage"]["selected"] >= 0.9 * len(film.strip())
    assert passages(folder, "tiny-lines") == ["Hello.", "Who is it?", "It is me, and it is cold."]


def test_outputs_replace_their_lines(folder: Path) -> None:
    points = ran(folder, "shout", "films")
    assert len(points) == 2
    for rows in points:
        assert [row["raw"] for row in rows] == [film.upper() for film in FILMS]
        assert all(row["prediction"].splitlines() == row["raw"].splitlines() for row in rows)


def test_subtitle_files_become_subtitle_files(folder: Path) -> None:
    [rows] = ran(folder, "files", "files", status=1)
    raw = {row["id"]: row["raw"] for row in rows}
    wanted = SRT.replace("Hello", "HELLO").replace("Who is it", "WHO IS IT").replace("Me", "ME")
    assert raw["srt"] == wanted.replace("\n", "\r\n")
    assert raw["row"] == wanted
    assert raw["vtt"] == VTT.replace("Hello &amp; go", "HELLO &amp; GO")
    [failure] = read_lines(next((folder / "out").glob("files/**/failures.jsonl")))
    assert failure["id"] == "plain"
    assert "cues: true makes subtitle files" in failure["error"]
