"""Rows and files of OpenAI-MRCR, GraphWalks, NoLiMa and HELMET, in the official layouts."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow
from command_line import write_files
from pyarrow import parquet
from row_files import write_rows

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
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist([*rows]), path)


def needles(data: Path, **changes: Any) -> NoLiMa:
    """Writes a set of needles and books, and returns their task."""
    folder = data / "nolima"
    entry = {
        "id": "0401", "needle": "Actually, {CHAR} lives next to the {1}.",
        "questions": {"onehop": "Which character has been to {2}?"},
        "character_set": ["Yuki", "Stuart", "Katie"],
        "tests": {"T1": {"input_args": ["Semper Opera", "Dresden"]}}, **changes,
    }  # fmt: skip
    books = {
        f"haystack/rand_shuffle/rand_book_{number}.txt": "\n".join(
            f"Line {n} of book {number} went on." for n in range(400)
        )
        for number in range(1, 6)
    }
    write_files(folder, {"needlesets/needle_set.json": json.dumps([entry]), **books})
    return NoLiMa(length=500, data=data)


def helmet(data: Path) -> Path:
    """Writes small files of HELMET; golden/helmet.json has their prompts by the official code."""
    chance = random.Random(1)

    def passage(number: int, **fields: Any) -> dict[str, Any]:
        text = f"Passage {number} about thing {number % 7}."
        return {"title": f"T{number}", "text": text, **fields}

    def asked(number: int, count: int, word: str, answers: str, **fields: Any) -> dict[str, Any]:
        listed = [f"{letter}{number}" for letter in answers]
        passages = [passage(number * (10 if count > 1 else 1) + i) for i in range(count)]
        question = f"{word}{number}?"
        return {"question": question, "answers": listed, "ctxs": passages, **fields}

    def pair(number: int) -> dict[str, Any]:
        demos = [["x", "1"], ["y", "2"], ["z", "3"]]
        fields = {"question": f"k{number}", "answer": f"v{number}", "num_kvs": 105}
        return {"context": json.dumps({f"k{number}": f"v{number}"}), "demos": demos, **fields}

    popular = [asked(q, 1, "who is ", "p", id=q, s_pop=5 if q % 4 else 99999) for q in range(150)]
    ranked = [
        {"qid": str(q), "query": f"find {q}",
         "ctxs": [passage(i, id=str(i), label=chance.randrange(4)) for i in range(5)]}
        for q in range(97) for _ in range(2)
    ]  # fmt: skip
    needle = {"context": "text {}", "query": "q{}", "type_needle_v": "number"}
    for file, rows in {
        "kilt/nq-dev-multikilt_1000_k50_dep6": [asked(q, 3, "what is ", "ab") for q in range(130)],
        "kilt/nq-train-multikilt_1000_k3_dep6": [asked(q, 1, "train ", "t") for q in range(20)],
        "kilt/popqa_test_1000_k50_dep6": popular,
        "kilt/popqa_test_1000_k3_dep6": popular[:30],
        "json_kv/test_k105_dep6": [pair(i) for i in range(120)],
        "ruler/niah_multikey_2/validation_8192": [
            {name: text.format(i) for name, text in needle.items()} | {"answer": [str(i)]}
            for i in range(110)
        ],
        "msmarco/test_reranking_data_k50_dep3": ranked,
        "msmarco/test_reranking_data_k10_dep3": [{**r, "ctxs": r["ctxs"][:3]} for r in ranked],
    }.items():
        write_rows(data / f"helmet/{file}.jsonl", *rows)
    return data
