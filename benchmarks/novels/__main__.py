"""Writes 60 questions on three novels as a task, with the spans of the passages that answer them.

    python -m benchmarks.novels --data FOLDER --out novels.jsonl

FOLDER contains the novels that `novels.json` lists with the SHA-256 of their loaded text (from
Project Gutenberg: Germinal in French, Little Women, Oliver Twist). `questions.jsonl` has only
quotes of at most 15 words, which are searched in the user's copies, ignoring line breaks. The
written file is for the task `JsonLines`; its groups are the kinds of questions: `single` (one
passage has the answer), `multiple` (only several passages have it, mostly far apart), `reworded`
(one passage has it, with other words than the question).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.records import Document
from leporello.loaders.files import load

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the file of the task.

    Raises:
        SystemExit: Novels are missing or have another text; the message lists all of them.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the novels")
    parser.add_argument("--out", type=Path, required=True, help="JSON Lines file to write")
    options = parser.parse_args(arguments)
    sums = json.loads((HERE / "novels.json").read_text(encoding="utf-8"))
    task_rows = [*rows(questions(), novels(options.data, sums))]
    lines = (json.dumps(row, ensure_ascii=False) for row in task_rows)
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = f"task {{class: JsonLines, path: {options.out}}}"
    print(f"{options.out}: {len(task_rows)} questions, {task}")


def questions() -> list[dict[str, Any]]:
    """Returns the questions of the file."""
    lines = (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def novels(folder: Path, sums: Mapping[str, str]) -> dict[str, Document]:
    """Returns the novels by the names of their files; their ids are their paths.

    Args:
        folder: Folder of the novels.
        sums: SHA-256 of each novel's text, by the name of its file.

    Raises:
        SystemExit: Novels are missing or have another text; the message lists all of them.
    """
    documents: dict[str, Document] = {}
    faults: list[str] = []
    for name, expected in sums.items():
        path = (folder / name).resolve()
        try:
            documents[name] = load(path, str(path))
        except UserError as error:
            faults.append(str(error))
            continue
        actual = hashlib.sha256(documents[name].text.encode()).hexdigest()
        if actual != expected:
            hint = "the questions need another text of this novel"
            faults.append(f"{path}: its text has SHA-256 {actual}, not {expected}; {hint}")
    if faults:
        raise SystemExit("\n".join(faults))
    return documents


def rows(
    all_questions: Sequence[Mapping[str, Any]], documents: Mapping[str, Document]
) -> Iterator[dict[str, Any]]:
    """Yields the rows of the task, numbered within each novel.

    Raises:
        SystemExit: A quote does not occur exactly once in its novel.
    """
    numbers: Counter[str] = Counter()
    for question in all_questions:
        name = question["novel"]
        numbers[name] += 1
        document = documents[name]
        yield {
            "id": f"{Path(name).stem}/{numbers[name]}",
            "document_path": document.id,
            "question": question["question"],
            "references": question["answers"],
            "evidence": [located(quote, document) for quote in question["evidence"]],
            "group": question["kind"],
        }


def located(quote: str, document: Document) -> tuple[int, int]:
    """Returns the span of a quote, ignoring differences of white space.

    Raises:
        SystemExit: The quote does not occur exactly once.
    """
    pattern = r"\s+".join(map(re.escape, quote.split()))
    places = [match.span() for match in re.finditer(pattern, document.text)]
    if len(places) != 1:
        raise SystemExit(f"{document.id}: has {quote!r} {len(places)} times, not once")
    return places[0]


if __name__ == "__main__":
    main()
