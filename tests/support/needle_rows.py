"""Rows and files of OpenAI-MRCR, GraphWalks and NoLiMa, in the official layouts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leporello.tasks import GraphWalks, Mrcr, NoLiMa

TURNS = [("user", "Write a poem about tapirs."), ("assistant", "Slow."),
         ("user", "Write a poem about tapirs."), ("assistant", "Lone."),
         ("user", "Prepend xY9 to the 2nd (1 indexed) poem about tapirs.")]  # fmt: skip
EXAMPLE = "The graph has the following edges:\na -> b\n\nOperation:\nFind the parents of node b.\n"
GRAPH = f"You will be given a graph.\n{EXAMPLE}Here is the graph to operate on:\n"
GRAPH += "The graph has the following edges:\nuvwx -> alke\nefgh -> uvwx\n\n\nOperation:\n"
GRAPH += "Find the parents of node alke.\n\nThe last line is Final Answer: [...]"


def conversation(**changes: Any) -> dict[str, Any]:
    """Returns a row of MRCR."""
    turns = [{"role": role, "content": text} for role, text in TURNS]
    row = {"prompt": json.dumps(turns), "answer": "xY9Lone.", "random_string_to_prepend": "xY9"}
    return {**row, "n_needles": 2, **changes}


def walk(**changes: Any) -> dict[str, Any]:
    """Returns a row of GraphWalks."""
    return {"prompt": GRAPH, "answer_nodes": ["uvwx"], "problem_type": "parents", **changes}


def mrcr(data: Path, *rows: dict[str, Any]) -> Mrcr:
    """Writes rows of MRCR and returns their task."""
    table(data / "mrcr/2needle/2needle_0.parquet", rows)
    return Mrcr("2needle_0", data=data)


def graph_walks(data: Path, *rows: dict[str, Any]) -> GraphWalks:
    """Writes rows of GraphWalks and returns their task."""
    table(data / "graphwalks/graphwalks_128k_and_shorter.parquet", rows)
    return GraphWalks(data=data)


def table(path: Path, rows: tuple[dict[str, Any], ...]) -> None:
    """Writes a Parquet file."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist([*rows]), path)


def needles(data: Path, **changes: Any) -> NoLiMa:
    """Writes a set of needles and books, and returns their task."""
    folder = data / "nolima"
    entry = {
        "id": "0401", "needle": "Actually, {CHAR} lives next to the {1}.",
        "questions": {"onehop": "Which character has been to {2}?"},
        "character_set": ["Yuki", "Stuart", "Katie"],
        "tests": {"T1": {"input_args": ["Semper Opera", "Dresden"]}}, **changes,
    }  # fmt: skip
    (folder / "needlesets").mkdir(parents=True, exist_ok=True)
    (folder / "needlesets/needle_set.json").write_text(json.dumps([entry]))
    (folder / "haystack/rand_shuffle").mkdir(parents=True, exist_ok=True)
    for number in range(1, 6):
        lines = "\n".join(f"Line {n} of book {number} went on." for n in range(400))
        (folder / f"haystack/rand_shuffle/rand_book_{number}.txt").write_text(lines)
    return NoLiMa(length=500, data=data)
