"""End-to-end tests of MuLD's subtitles through the command line."""

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
    """Returns a folder with a split in MuLD's format and a config of a tiny pipeline."""
    rows = ({"input": film, "output": film.splitlines()} for film in FILMS)
    write_rows(tmp_path / "data/muld/opensubtitles_test.json.bz2", *rows)
    reader = {"model": tiny("t5"), "max_new_tokens": 6, "device": "cpu"}
    pipeline = {"extends": "muld-opensubtitles", "chunker": {"tokenizer": tiny("t5")}}
    # Without METEOR, which needs Java.
    task = {"class": "Muld", "name": "opensubtitles", "metrics": ["f1"]}
    config = {"pipelines": {"tiny": {**pipeline, "reader": reader}}, "tasks": {"films": task}}
    (tmp_path / "mine.yaml").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def ran(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    out = ("--data", folder / "data", "--config", folder / "mine.yaml", "--out", folder / "out")
    leporello("run", *HERE, "tiny", "--task", "films", *out)
    [file] = (folder / "out").glob("*/**/predictions.jsonl")
    return read_lines(file), read_lines(file.with_name("calls.jsonl"))


def test_the_pipeline_of_the_paper_joins_chunks_of_complete_lines(folder: Path) -> None:
    rows, [first, *_] = ran(folder)
    calls = calls_from_row(first["calls"])
    assert {call["round"] for call in calls} == {0}
    read = [FILMS[0][start:end] for call in calls for start, end in call["passages"]]
    assert read == [FILMS[0].strip()]
    assert all(row["coverage"]["selected"] >= 0.9 * len(row["raw"]) for row in rows)
