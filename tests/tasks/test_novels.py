"""Tests of questions on novels, and of their evidence in the user's copies."""

import hashlib
from collections import Counter
from pathlib import Path

import pytest
from row_files import write_rows

from benchmarks.novels.__main__ import novels, questions, rows
from leporello.core.records import Span
from leporello.tasks import JsonLines

NOVEL = "It rained.\n\nThe landlord's name\nwas Amos, and his dog's was Ann.\nNobody slept.\n"
QUESTION = {
    "novel": "tale.txt", "kind": "single", "question": "Who kept the inn?", "answers": ["Amos"],
    "evidence": ["landlord's name was Amos"],
}  # fmt: skip


def test_questions_are_well_formed() -> None:
    all_questions = questions()
    kinds = Counter(question["kind"] for question in all_questions)
    assert kinds == {"single": 25, "multiple": 20, "reworded": 15}
    assert len({question["question"] for question in all_questions}) == 60
    for question in all_questions:
        answers, quotes = question["answers"], question["evidence"]
        assert 1 <= len(answers) <= 4
        assert all(1 <= len(answer.split()) <= 8 for answer in answers)
        assert all(1 <= len(quote.split()) <= 15 for quote in quotes)
        assert len(quotes) >= (2 if question["kind"] == "multiple" else 1)


def test_quotes_become_spans_of_the_users_copy(tmp_path: Path) -> None:
    converted = rows([QUESTION], novels(tmp_path, written(tmp_path)))
    write_rows(tmp_path / "rows.jsonl", *converted)
    [example] = JsonLines(tmp_path / "rows.jsonl").examples()
    start = NOVEL.index("landlord")
    assert example.evidence == (Span(start, start + len("landlord's name\nwas Amos")),)
    assert (example.id, example.references, example.group) == ("tale/1", ("Amos",), "single")


def test_a_repeated_quote_is_refused(tmp_path: Path) -> None:
    twice = QUESTION | {"evidence": ["was"]}
    with pytest.raises(SystemExit, match="has 'was' 2 times, not once"):
        [*rows([twice], novels(tmp_path, written(tmp_path)))]


def test_other_texts_and_missing_novels_are_refused(tmp_path: Path) -> None:
    sums = written(tmp_path, "More.\n") | {"lost.txt": "0"}
    with pytest.raises(SystemExit, match=r"(?s)tale\.txt: its text has SHA-256 .*lost\.txt"):
        novels(tmp_path, sums)


def written(folder: Path, more: str = "") -> dict[str, str]:
    (folder / "tale.txt").write_text(NOVEL + more, encoding="utf-8")
    return {"tale.txt": hashlib.sha256(NOVEL.encode()).hexdigest()}
