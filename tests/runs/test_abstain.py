"""Tests of `abstain`, which withholds answers with low confidence."""

import json
from pathlib import Path

import pytest
from command_line import write_files

from leporello.api import ask, run
from leporello.core.files import read_json, read_rows

READER = """
from leporello import Output
from leporello.readers import Lead

class Confident(Lead):
    '''Answers with the question's last word; the first word is the probability.'''

    def read(self, inputs):
        words = [read.question.split() for read in inputs]
        return [Output(w[-1], probability=None if w[0] == "-" else float(w[0])) for w in words]
"""
CONFIG = """
tasks:
  rows: {class: JsonLines, path: rows.jsonl, metrics: [f1, no_answer], no_answer: unanswerable}
pipelines:
  bold:
    tasks: [rows]
    reader: {class: "./plug.py:Confident"}
  careful: {extends: bold, abstain: 0.5}
"""
QUESTIONS = [("0.9", "mill"), ("0.2", "cat"), ("-", "owl"), ("0.5", "hen"), ("0.0", "fox")]


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> Path:
    rows = [
        {"id": word, "document": "A mill.", "question": f"{probability} {word}",
         "references": ["unanswerable" if word in ("cat", "owl") else word]}
        for probability, word in QUESTIONS
    ]  # fmt: skip
    write_files(tmp_path, {"rows.jsonl": rows, "plug.py": READER, "mine.yaml": CONFIG})
    return tmp_path / "mine.yaml"


def test_unconfident_answers_become_the_tasks_no_answer_text(config: Path, tmp_path: Path) -> None:
    """`raw` keeps the combiner's answer; answers without confidence stay, with a note."""
    result = run(["bold", "careful"], config=[config], out=tmp_path / "out", workers=0)
    bold, careful = result.results
    rows = {row["id"]: row for row in read_rows(tmp_path / "out/careful/rows/predictions.jsonl")}
    assert {id_: row["prediction"] for id_, row in rows.items()} == {
        "mill": "mill", "cat": "unanswerable", "owl": "owl", "hen": "hen", "fox": "unanswerable",
    }  # fmt: skip
    assert [id_ for id_, row in rows.items() if row.get("abstained")] == ["cat", "fox"]
    assert (rows["cat"]["raw"], rows["cat"]["confidence"]) == ("cat", 0.2)
    assert careful.scores["no_answer_precision"] == careful.scores["no_answer_recall"] == 50
    assert bold.scores["no_answer_f1"] == 0
    assert careful.confidence["withheld"] == 2
    assert bold.confidence["answers"] == 4
    [note] = careful.notes
    assert "never withholds" in note
    assert not bold.notes
    resolved = read_json(tmp_path / "out/manifest.json")
    assert '"abstain": 0.5' in json.dumps(resolved)


def test_ask_shows_a_sentence_without_an_answer(config: Path) -> None:
    """A confident answer is shown unchanged."""
    document = config.parent / "mill.txt"
    document.write_text("A mill.")
    answers = [ask(document, q, pipeline="careful", config=[config]) for q in ("0.9 yes", "0.2 no")]
    assert [answer.told for answer in answers] == ["yes", "The document does not say so."]
