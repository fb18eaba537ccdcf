"""The recipe `routes`: learns from a run which pipeline is best for a question, by its words."""

import json
from pathlib import Path

import pytest
from command_line import HERE, leporello, read_lines, write_files

from leporello.core.errors import UserError
from recipes.command import run_recipe

TEXT = "Anna painted the boots in Bruges. Carl ate seven red apples."
QUESTIONS = [
    *((f"Who painted the boots {n}?", TEXT) for n in range(6)),
    *((f"How many apples did Carl eat {n}?", "seven") for n in range(6)),
]
CONFIG = """
pipelines:
  whole: {reader: {class: Lead, words: 60}, combiner: {class: When, combiner: Stuff}}
  short: {extends: whole, reader: Embedded}
  routed:
    readers: {answer: {class: Lead, words: 60}, short: Embedded}
    combiner:
      class: LearntRoute
      model: ./made/routes/routes.json
      routes: [Stuff, {class: ByRole, combiner: Stuff, role: short}]
tasks: {tale: {class: JsonLines, path: rows.jsonl}}
"""


def test_a_run_of_both_pipelines_teaches_the_route(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "document": TEXT, "question": question, "references": [answer]}
        for n, (question, answer) in enumerate(QUESTIONS)
    ]
    write_files(tmp_path, {"rows.jsonl": rows, "mine.yaml": CONFIG})
    options = ("--task", "tale", "--config", tmp_path / "mine.yaml", *HERE)
    missing = leporello("run", "routed", *options, "--out", tmp_path / "none", status=2)
    assert "docs/deciding.md shows how to create the file" in missing.stderr
    leporello("run", "whole", "short", *options, "--out", tmp_path / "both")
    settings = tmp_path / "settings.yaml"
    settings.write_text("{run: both, task: tale, pipelines: [whole, short]}")
    folder = tmp_path / "made"
    summary = run_recipe("routes", settings, folder)
    assert summary["folder"] == str(folder / "routes" / "routes.json")
    learnt = json.loads((folder / "training.json").read_text())["learnt"]
    assert learnt["routed"] > max(learnt["whole"], learnt["short"])
    leporello("run", "routed", *options, "--out", tmp_path / "out")
    answers = read_lines(tmp_path / "out" / "routed" / "tale" / "predictions.jsonl")
    ways = [row["raw"]["way"] for row in answers]
    assert ways == [["route 1 of 2"]] * 6 + [["route 2 of 2"]] * 6
    settings.write_text("{run: both, task: tale, pipelines: [whole, shor]}")
    with pytest.raises(UserError, match="the run has no results of pipeline 'shor'"):
        run_recipe("routes", settings, tmp_path / "x")
