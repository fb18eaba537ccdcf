"""Documents with summaries, one row of JSON each, from the files of public data sets.

A row has `document` (its id), `text`, `question`, and `references`, the summaries.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError


def qmsum(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the queries on the meetings of QMSum's folder `data/ALL/train` (MIT)."""
    for path in sorted(folder.glob("*.json")):
        meeting = json.loads(path.read_text(encoding="utf-8"))
        turns = (f"{turn['speaker']}: {turn['content']}" for turn in meeting["meeting_transcripts"])
        text = "\n".join(turns)
        for query in meeting["general_query_list"] + meeting["specific_query_list"]:
            yield _row(path.stem, text, query["query"], [query["answer"]])


def squality(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the questions on the stories of SQuALITY's `v1-3/txt/train.jsonl` (CC BY 4.0)."""
    for story in _lines(file):
        for question in story["questions"]:
            answers = [answer["response_text"] for answer in question["responses"]]
            name = story["metadata"]["passage_id"]
            yield _row(name, story["document"], question["question_text"], answers)


def bamboo(file: Path) -> Iterator[dict[str, Any]]:
    """Yields papers with their own abstracts from BAMBOO's `abshallu_4k.jsonl` (MIT; CC BY)."""
    for paper in _lines(file):
        if str(paper["answer"]) == "True":  # the others' abstracts were falsified
            yield _row(paper["title"], paper["content"], "", [paper["hypothesis"]])


def gov_report(file: Path) -> Iterator[dict[str, Any]]:
    """Yields the reports of a file of SCROLLS' `gov_report` (US government, public domain)."""
    for report in _lines(file):
        yield _row(report["id"], report["input"].removeprefix("Report:"), "", [report["output"]])


SOURCES: Mapping[str, Callable[[Path], Iterator[dict[str, Any]]]] = {
    "qmsum": qmsum,
    "squality": squality,
    "bamboo": bamboo,
    "gov_report": gov_report,
}


def _row(document: str, text: str, question: str, references: list[str]) -> dict[str, Any]:
    return {
        "document": document,
        "text": text.strip(),
        "question": question,
        "references": references,
    }


def _lines(file: Path) -> Iterator[Any]:
    try:
        with file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
