"""Official SCROLLS and ZeroSCROLLS files -> JsonLines tasks, until there are readers for them.

    python -m benchmarks.official DATA OUT
    python run_pipeline.py run ask-smollm2 lead --config OUT/official.yaml --task official/quality

DATA holds `scrolls/{quality,qasper}/validation.jsonl` and
`zero_scrolls/squality/validation.jsonl`, as the benchmarks name them.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]

_OPTION = re.compile(r" *\([A-D]\) *")


def quality(row: Row) -> Row:
    """Splits question, options and story; the gold is the text of an option."""
    question, rest = row["input"].split("\n\n", 1)
    options, story = re.split(r"(?<=\S)\n\n+", rest, maxsplit=1)
    choices = [choice.strip() for choice in _OPTION.split(options)[1:]]
    assert len(choices) == 4, row["id"]
    return {"question": question, "choices": choices, "document": story}


def qasper(row: Row) -> Row:
    """Splits question and paper."""
    question, paper = row["input"].split("\n\n", 1)
    return {"question": question, "document": paper}


def squality(row: Row) -> Row:
    """Takes story and question by the character offsets of ZeroSCROLLS."""
    story = row["input"][row["document_start_index"] : row["document_end_index"]]
    query = row["input"][row["query_start_index"] : row["query_end_index"]]
    return {"question": query.removeprefix("Question:\n").strip(), "document": story}


SETS: dict[str, tuple[Callable[[Row], Row], str, str]] = {
    "scrolls/quality": (quality, "exact_match", ""),
    "scrolls/qasper": (qasper, "f1", ""),
    "zero_scrolls/squality": (squality, "rouge", "Answer the question in a paragraph."),
}


def convert(path: Path, split_input: Callable[[Row], Row]) -> Iterator[Row]:
    """Yields rows of `JsonLines`: references merged by id, each document given once."""
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    merged: dict[str, Row] = {}
    for row in rows:
        entry = merged.setdefault(
            row["id"], {"id": row["id"], **split_input(row), "references": []}
        )
        entry["references"].append(row["output"])
    given: set[str] = set()
    for entry in merged.values():
        key = hashlib.sha256(entry["document"].encode()).hexdigest()[:12]
        if key in given:
            del entry["document"]
        given.add(key)
        yield {**entry, "document_id": key}


def main(data: Path, out: Path) -> None:
    """Writes a JSON Lines file a set, and a config that names them as tasks."""
    out.mkdir(parents=True, exist_ok=True)
    tasks = {}
    for name, (split_input, metric, instruction) in SETS.items():
        target = out / f"{name.rpartition('/')[2]}.jsonl"
        with target.open("w", encoding="utf-8") as file:
            for row in convert(data / name / "validation.jsonl", split_input):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        tasks[f"official/{target.stem}"] = {
            "class": "JsonLines", "path": target.name, "metrics": [metric],
            "instruction": instruction,
        }  # fmt: skip
    (out / "official.yaml").write_text(json.dumps({"tasks": tasks}, indent=2), encoding="utf-8")
    print(f"wrote {', '.join(tasks)} to {out / 'official.yaml'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
