"""Writes 60 questions on three novels as a task, with the spans of the passages that answer them.

    python -m benchmarks.novels --data FOLDER --out novels.jsonl

FOLDER holds the novels that `novels.json` names, with the SHA-256 of each one's text as it is
loaded (from Project Gutenberg: Germinal in French, Little Women, Oliver Twist). `questions.jsonl`
has no more of them than quotes of at most 15 words, which are sought here in the user's own copies,
however their lines are broken. The file that is written is for the task `JsonLines`; its groups are
the kinds of questions: `single` (one passage says it), `multiple` (only several passages, mostly
far apart, do), `reworded` (one passage says it, in other words than the question's).
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
    """Writes the task's file.

    Raises:
        SystemExit: Novels that are missing or of another text, all of them.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="where the novels lie")
    parser.add_argument("--out", type=Path, required=True, help="the JSON Lines file to write")
    options = parser.parse_args(arguments)
    sums = json.loads((HERE / "novels.json").read_text(encoding="utf-8"))
    made = [*rows(questions(), novels(options.data, sums))]
    lines = (json.dumps(row, ensure_ascii=False) for row in made)
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{options.out}: {len(made)} questions, task {{class: JsonLines, path: {options.out}}}")


def questions() -> list[dict[str, Any]]:
    """Returns the questions, as they stand in the file."""
    lines = (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def novels(folder: Path, sums: Mapping[str, str]) -> dict[str, Document]:
    """Returns the novels by the names of their files; their ids are their paths.

    Args:
        folder: Where they lie.
        sums: SHA-256 of each novel's text, by the name of its file.

    Raises:
        SystemExit: Some are missing or of another text; all are named.
    """
    found: dict[str, Document] = {}
    faults: list[str] = []
    for name, expected in sums.items():
        path = (folder / name).resolve()
        try:
            found[name] = load(path, str(path))
        except UserError as error:
            faults.append(str(error))
            continue
        actual = hashlib.sha256(found[name].text.encode()).hexdigest()
        if actual != expected:
            hint = "the questions are on another text of this novel"
            faults.append(f"{path}: its text has SHA-256 {actual}, not {expected}; {hint}")
    if faults:
        raise SystemExit("\n".join(faults))
    return found


def rows(
    asked: Sequence[Mapping[str, Any]], documents: Mapping[str, Document]
) -> Iterator[dict[str, Any]]:
    """Yields the rows of the task, numbered within each novel.

    Raises:
        SystemExit: A quote does not stand in its novel once.
    """
    numbers: Counter[str] = Counter()
    for question in asked:
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
    """Returns where a quote stands, whatever white space parts its words.

    Raises:
        SystemExit: It stands there more than once, or not at all.
    """
    pattern = r"\s+".join(map(re.escape, quote.split()))
    places = [match.span() for match in re.finditer(pattern, document.text)]
    if len(places) != 1:
        raise SystemExit(f"{document.id}: has {quote!r} {len(places)} times, not once")
    return places[0]


if __name__ == "__main__":
    main()
