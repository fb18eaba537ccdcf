"""End-to-end tests of MuLD's character archetypes, through the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from command_line import HERE, leporello, read_lines
from row_files import write_rows

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


def data(folder: Path, rows: list[tuple[str, Any]]) -> Path:
    """Writes a split of character_id in MuLD's format; returns the data directory."""
    place = folder / "data" / "muld" / "character_id_test.json.bz2"
    write_rows(place, *({"input": text, "output": label} for text, label in rows))
    return folder / "data"


def sets(model: str) -> list[str]:
    """Returns the options that put the tiny model into the pipeline."""
    settings = {"reader.model": model, "chunker.tokenizer": model, "reader.device": "cpu"}
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


def test_archetypes_are_predicted_near_mentions(tiny: Callable[[str], str], tmp_path: Path) -> None:
    labels = ("Hero", "Villain/Antagonist")
    folder = data(
        tmp_path, [(f"HARRY\n{SCRIPT}", "Hero"), (f"Sally\n{SCRIPT}", ["Villain/Antagonist"])]
    )
    options: tuple[str | Path, ...] = (
        "--data",
        folder,
        *sets(tiny("t5")),
        "--out",
        tmp_path / "out",
    )
    command = ("run", NAME, *HERE, *options)
    result = leporello(*command)
    results = tmp_path / "out" / NAME / "muld" / "character_id"
    harry, sally = read_lines(results / "predictions.jsonl")
    assert harry["prediction"] in labels
    assert sally["prediction"] in labels
    assert [count for _, _, count in harry["hits"]] == [3, 1, 1]
    assert sally["hits"] == sally["read"] == []
    texts = [SCRIPT[start:end] for start, end in harry["read"]]
    assert [text.upper().count("HARRY") for text in texts] == [1, 3, 1]
    assert texts[0].startswith("FADE IN.")
    assert texts[2].endswith("FADE OUT.")
    assert harry["coverage"]["cut"] == 0
    [call], [second] = (calls_from_row(r["calls"]) for r in read_lines(results / "calls.jsonl"))
    assert call["passages"] == harry["read"]
    assert call["choices"] == list(labels)
    assert len(call["output"]["scores"]) == 2
    assert second["passages"] == []
    assert "the name is never mentioned" in " ".join(result.stdout.split())
    before = (results / "predictions.jsonl").read_bytes()
    leporello(*command)
    assert (results / "predictions.jsonl").read_bytes() == before
