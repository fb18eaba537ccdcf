"""The verb `ask` with the pipeline `default`: the output for a terminal."""

import json
import re
from pathlib import Path

import pytest
from command_line import leporello

FACTS = (
    "The ferry at Quern has run since 1871. Grigor Sande wrote down every soul, hoof and hatbox."
    " Ann Dunning found the unread fax behind the boiler. She gave it to the Widow Frack."
)


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    """Returns a document with its facts in the middle."""
    filler = "The rain fell on the harbour, and the boats lay still. " * 100
    path = tmp_path / "ferry.txt"
    path.write_text(f"{filler}\n\n{FACTS}\n\n{filler}", encoding="utf-8")
    return path


def test_a_missing_model_is_reported(file: Path) -> None:
    result = leporello("ask", file, "Who?", "--model", "./absent", status=2)
    assert "there is no such file or folder" in result.stderr


@pytest.mark.parametrize(
    ("pipeline", "needed"),
    [
        ("muld-style-change", "Parts needs parts of the document"),
        ("longbench-middle", "TruncateMiddle needs the official input"),
        ("muld-character-presence", "Presence needs two choices"),
    ],
)
def test_a_pipeline_that_only_a_task_can_use_is_refused_first(
    tmp_path: Path, pipeline: str, needed: str
) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    line = ("ask", tmp_path / "broken.pdf", "Who?", "--pipeline", pipeline)
    assert f"{needed}, which only a task gives" in leporello(*line, status=2).stderr


def test_the_answer_is_the_first_line(file: Path) -> None:
    first, confidence, place, *_, ledger = leporello(
        "ask", file, "Who found the unread fax?"
    ).stdout.splitlines()
    start = file.read_text(encoding="utf-8").index("Ann Dunning")
    assert first == "Ann Dunning"
    assert re.fullmatch(r"(sure|likely|unsure) \(\d+%\)", confidence)
    assert place.startswith(f"ferry.txt characters {start}–{start + 11}")
    assert " characters: unselected " in ledger


def test_the_cost_of_an_answer_is_printed_on_request(file: Path) -> None:
    question = "Who found the unread fax?"
    *lines, cost = leporello("ask", file, question, "--verbose").stdout.splitlines()
    assert re.fullmatch(r"\d+\.\d s, 1 read", cost)
    assert "score" in lines[2]
    assert "score" not in leporello("ask", file, question).stdout


def test_a_question_whose_words_do_not_occur_has_no_answer_and_no_passage(file: Path) -> None:
    note, answer, ledger = leporello("ask", file, "submarine cables?").stdout.splitlines()
    assert note == "note: BM25 found no passage with a word of a question on this document"
    assert answer == "The document does not say so."
    assert "unselected" in ledger
    assert ledger.endswith("read 0 (0.0 %)")
    assert "The rain fell" in leporello("ask", file, "Summarise it").stdout


def test_another_language_is_noted_before_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "fähre.txt"
    path.write_text("Der Fährmann ist alt und er weiß nicht, was er will. " * 20, encoding="utf-8")
    first, *_ = leporello("ask", path, "Wer ist alt?").stdout.splitlines()
    assert first.startswith("note: the document does not look English")
    answer = json.loads(leporello("ask", path, "Wer ist alt?", "--json").stdout)
    assert "--model" in answer["notes"][0]


def test_a_document_cannot_control_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "ferry.txt"
    text = "The ferry \x1b]52;c;aGk=\x07\x9b2J\rsails\u202e at nine\u2066.\tשלום\u200f"
    path.write_bytes(text.encode())
    shown = leporello(
        "ask", path, "When does the ferry sail?", "--pipeline", "best-sentence"
    ).stdout
    assert "\\x1b]52;c;aGk=" in shown
    assert "\\x9b2J" in shown
    assert "sails\\u202e at nine\\u2066." in shown
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\r", "\u202e", "\u2066"}
    assert "שלום\u200f" in shown
    line = ("ask", path, "When does the ferry sail?", "--pipeline", "best-sentence", "--json")
    shown = leporello(*line).stdout
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\r", "\u202e", "\u2066"}
    assert "\x9b2J\rsails\u202e" in json.loads(shown)["passages"][0]["text"]
