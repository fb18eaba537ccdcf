"""End-to-end tests of MuLD's subtitles through the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from row_files import write_rows

from leporello.engine.results.serialization import calls_from_row

FILMS = (
    "Hello.\n- Who is it?\n\nIt is me, and it is cold.\n",
    "Go.\r\nNow!\r\n\r\n  - Where?",
    "one line that is far longer than a chunk of it may be, and goes on and on\nand another",
)


@pytest.fixture
def folder(tmp_path: Path, tiny: Callable[[str], str]) -> Path:
    """Returns a folder with a split in MuLD's format and a config of tiny pipelines."""
    rows = ({"input": film, "output": film.splitlines()} for film in FILMS)
    write_rows(tmp_path / "data/muld/opensubtitles_test.json.bz2", *rows)
    reader = {"model": tiny("t5"), "max_new_tokens": 6, "device": "cpu"}
    config: dict[str, Any] = {
        "pipelines": {
            name: {
                "extends": f"muld-opensubtitles{suffix}",
                "chunker": {"tokenizer": tiny("t5")},
                "reader": reader,
            }
            for name, suffix in (("tiny", ""), ("tiny-lines", "-lines"))
        },
        # Without METEOR, which needs Java.
        "tasks": {"films": {"class": "Muld", "name": "opensubtitles", "metrics": ["f1"]}},
    }
    (tmp_path / "mine.yaml").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def ran(folder: Path, pipeline: str) -> list[dict[str, Any]]:
    """Runs a pipeline on the films; returns the predictions."""
    out = ("--data", folder / "data", "--config", folder / "mine.yaml", "--out", folder / "out")
    leporello("run", *HERE, pipeline, "--task", "films", *out)
    [file] = (folder / "out").glob("*/**/predictions.jsonl")
    return read_lines(file)


def passages(folder: Path, pipeline: str) -> list[str]:
    """Returns the texts that were read of the first film, all in the first round."""
    [row, *_] = read_lines(next((folder / "out").glob(f"{pipeline}/**/calls.jsonl")))
    calls = calls_from_row(row["calls"])
    assert {call["round"] for call in calls} == {0}
    return [FILMS[0][start:end] for call in calls for start, end in call["passages"]]


def test_the_pipeline_of_the_paper_joins_chunks_of_complete_lines(folder: Path) -> None:
    rows = ran(folder, "tiny")
    assert passages(folder, "tiny") == [FILMS[0].strip()]
    assert all(row["coverage"]["selected"] >= 0.9 * len(row["raw"]) for row in rows)


def test_line_by_line_keeps_lines_in_their_places(folder: Path) -> None:
    rows = ran(folder, "tiny-lines")
    for film, row in zip(FILMS, rows, strict=True):
        lines, originals = row["raw"].splitlines(keepends=True), film.splitlines(keepends=True)
        assert len(lines) == len(originals)
        for line, before in zip(lines, originals, strict=True):
            assert line.endswith(before[len(before.rstrip("\r\n")) :])
            assert before.strip() or not line.strip()
        assert row["coverage"]["selected"] >= 0.9 * len(film.strip())
    assert passages(folder, "tiny-lines") == ["Hello.", "Who is it?", "It is me, and it is cold."]
