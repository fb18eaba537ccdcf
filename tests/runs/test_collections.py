"""Tests of collections from the command line, from YAML and from rows."""

import json
from pathlib import Path

import pytest
from command_line import leporello, write_files

from leporello.config import load_config
from leporello.runs.ask import AskSettings, Session
from leporello.tasks import JsonLines

CONFIG = """
collections: {ferries: [files, more/*.txt]}
pipelines:
  each:
    chunker: {class: Paragraphs, size: 20}
    retriever: {class: TwoSteps, first: {class: BM25}, then: {class: TfIdf}, files: 2, each: 1}
    reader: {class: BestSentence}
tasks:
  ferries: {class: JsonLines, path: rows.jsonl}
"""
ROWS = (
    {"id": "1", "collection": "ferries", "question": "Who found the fax?"},
    {"id": "2", "documents": ["files/a.txt", "more"], "question": "Who?", "evidence": ["Ann"]},
    {"id": "3", "collection": "ferrys", "question": "Who?"},
    {"id": "4", "documents": ["none"], "question": "Who?"},
)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """Two folders of files, one of which is broken, with a config and rows."""
    files = {
        "files/a.txt": "Ann found the fax behind the boiler.\n\nNobody else found a fax.",
        "files/b.md": "# Boats\n\nBob found the fax under a boat.",
        "files/broken.txt": "\0\1",
        "more/c.txt": "The rain fell on the harbour.",
        "config.yaml": CONFIG,
    }
    write_files(tmp_path, {**files, "rows.jsonl": ROWS})
    return tmp_path


def test_each_file_has_its_answer(folder: Path) -> None:
    """The table has one line per file; a broken file is reported, and the exit status is 1."""
    line = ("ask", folder / "files", "Who found the fax?", "--each", "--pipeline", "best-sentence")
    process = leporello(*line, status=1)
    _, first, second, warning = process.stdout.splitlines()
    assert " ".join(first.split()) == "a.txt Ann found the fax behind the boiler. characters 0–36"
    assert second.split()[:3] == ["b.md", "Bob", "found"]
    assert warning.startswith("1 × unreadable file (broken.txt): ")
    rows = json.loads(leporello(*line, "--json", status=1).stdout)
    assert [row["document"] for row in rows] == ["a.txt", "b.md"]
    assert rows[1]["passages"][0]["place"].startswith("b.md ")


def test_files_are_chosen_before_passages(folder: Path) -> None:
    session = Session.open([Path("ferries")], AskSettings("each", config=[folder / "config.yaml"]))
    answer = session.ask("Who found the fax?")
    places = {passage.place.split()[0] for passage in answer.passages}
    assert places == {"files/a.txt", "files/b.md"}
    assert len(answer.passages) == 2
    assert [m.name for m in session.document.members] == ["files/a.txt", "files/b.md", "c.txt"]


def test_rows_name_collections(folder: Path) -> None:
    """Rows name files or a collection; a row with a missing file fails without the others.

    The fingerprint of the task covers the content of the files.
    """
    task = load_config([folder / "config.yaml"]).tasks["ferries"].spec.build()
    assert isinstance(task, JsonLines)
    task = JsonLines(task.path, collections=task.collections)
    first, second, third, fourth = task.examples()
    assert [m.name for m in first.document.members] == ["files/a.txt", "files/b.md", "c.txt"]
    assert [m.name for m in second.document.members] == ["a.txt", "more/c.txt"]
    assert (first.document.id, second.document.id) == ("ferries", "files/a.txt, more")
    assert "there is no collection 'ferrys'; did you mean 'ferries'" in third.fault
    assert "none: there is no such file" in fourth.fault
    before = task.fingerprint()
    (folder / "more" / "d.txt").write_text("new", encoding="utf-8")
    assert task.fingerprint() != before
