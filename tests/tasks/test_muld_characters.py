"""MuLD's character archetypes from the benchmark's file to scores, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from row_files import write_rows
from tiny_models import save

from leporello.engine.results.serialization import calls_from_row

NAME = "muld-character-archetype-t5"
RAIN = "The rain falls on the quay, and nobody says a word.\n" * 40
SCRIPT = (
    "FADE IN.\n\n          HARRY (V.O.)\n     Where have they gone?\n\n"
    + RAIN
    + "Harry sees Harry's boat. HARRY runs.\n"
    + RAIN
    + "                    HARRY\n     It is over.\n\nFADE OUT.\n"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny T5 with random weights."""
    folder = tmp_path_factory.mktemp("characters") / "t5"
    save("t5", folder)
    return folder


def data(folder: Path, rows: list[tuple[str, Any]]) -> Path:
    """Writes a split of character_id as MuLD has it; returns the data directory."""
    place = folder / "data" / "muld" / "character_id_test.json.bz2"
    write_rows(place, *({"input": text, "output": label} for text, label in rows))
    return folder / "data"


def sets(model: Path) -> list[str | Path]:
    """Returns what puts the tiny model into the pipeline."""
    given = {"reader.model": model, "chunker.tokenizer": model, "reader.device": "cpu"}
    return [part for key, value in given.items() for part in ("--set", f"{key}={value}")]


def test_archetypes_are_told_from_windows_around_mentions(model: Path, tmp_path: Path) -> None:
    """First, last and densest window are read in document order; an absent character is noted."""
    labels = ("Hero", "Villain/Antagonist")
    where = data(
        tmp_path, [(f"HARRY\n{SCRIPT}", "Hero"), (f"Sally\n{SCRIPT}", ["Villain/Antagonist"])]
    )
    command: list[str | Path] = [
        "run",
        NAME,
        "--data",
        where,
        *sets(model),
        "--out",
        tmp_path / "out",
    ]
    told = leporello(*command)
    found = tmp_path / "out" / NAME / "muld" / "character_id"
    harry, sally = read_lines(found / "predictions.jsonl")
    assert harry["prediction"] in labels
    assert sally["prediction"] in labels
    assert [count for _, _, count in harry["hits"]] == [3, 1, 1]
    assert sally["hits"] == sally["read"] == []
    texts = [SCRIPT[start:end] for start, end in harry["read"]]
    assert [text.upper().count("HARRY") for text in texts] == [1, 3, 1]
    assert texts[0].startswith("FADE IN.")
    assert texts[2].endswith("FADE OUT.")
    assert harry["coverage"]["cut"] == 0
    [call], [second] = (calls_from_row(r["calls"]) for r in read_lines(found / "calls.jsonl"))
    assert call["passages"] == harry["read"]
    assert call["choices"] == list(labels)
    assert len(call["output"]["scores"]) == 2
    assert second["passages"] == []
    assert "the name is never mentioned" in " ".join(told.stdout.split())
    before = (found / "predictions.jsonl").read_bytes()
    leporello(*command)
    assert (found / "predictions.jsonl").read_bytes() == before


def test_a_classifier_learns_archetypes_from_the_train_split(tmp_path: Path) -> None:
    """Trained by one command and run by the one that it tells, in MuLD's own files."""
    deeds = {
        "Hero": "saves the child and laughs",
        "Villain/Antagonist": "burns the ship and sneers",
    }
    rows = [
        (f"{name}\n{RAIN}{name} {deeds[kind]}.\n{RAIN}{name} {deeds[kind]} again.\n{RAIN}", kind)
        for name, kind in zip(("Ann", "Bob", "Cid", "Dora") * 2, (*deeds,) * 4, strict=True)
    ]
    where = data(tmp_path, [*rows[:4]])
    for split in ("train", "validation"):
        place = where / "muld" / f"character_id_{split}.json.bz2"
        write_rows(place, *({"input": text, "output": label} for text, label in rows))
    name, out = "muld-character-archetype", tmp_path / "model"
    made = leporello("train", name, "--data", where, "--out", out, "--json")
    told = json.loads(made.stdout)
    assert (told["inputs"], told["task"]) == (8, "muld/character_id")
    assert (told["validated"], told["scores"]["f1_macro"]) == ("split validation", 100.0)
    used = ("--config", told["config"], "--data", where, "--out", tmp_path / "run")
    leporello("run", *HERE, told["pipeline"], "--task", told["task"], *used)
    found = tmp_path / "run" / told["pipeline"] / "muld" / "character_id"
    scores = json.loads((found / "metrics.json").read_text(encoding="utf-8"))["scores"]
    assert scores["f1_macro"] == 100.0
