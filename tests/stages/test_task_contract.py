"""Tests all tasks with the kit for authors of plug-ins."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import GOLDEN
from needle_rows import conversation, graph_walks, helmet, mrcr, needles, walk
from official_rows import scrolls_row, sorting_row, zero_scrolls_row
from row_files import write_rows

from leporello import tasks
from leporello.testing import TaskContract
from leporello.testing.contract import Maker

STORY = (
    "Ina fixed the pump. It ran all night.\n\nBy morning the cellar was dry. Nobody thanked her."
)


ASKED = [{"id": f"r{n}", "document": STORY[n // 2 :], "question": f"Who is {n}?"} for n in range(3)]
TALKS = [{"input": STORY * 9 + end, "output": ["The cellar."]} for end in ("", "So be it.")]
SHUFFLED = [{"id": name, "text": STORY} for name in "ab"]
SORTED = [sorting_row("r0", STORY, ("It ran.", "It was dry."), "2, 1")]
STORIES = [zero_scrolls_row("r0", text=STORY, query="Who?", output="Ina")]


def rows(folder: Path, name: str, content: Iterable[Any]) -> Path:
    """Writes rows as lines, JSON unless they are texts; returns the folder."""
    write_rows(folder / name, *content)
    return folder


def scrolls(folder: Path) -> Path:
    """Writes two questions about one document, and one about another."""
    texts = (f"Who?\n\n{STORY}", f"When?\n\n{STORY}", f"Who?\n\n{STORY * 2}")
    content = (scrolls_row(f"r{n}", text, "Ina") for n, text in enumerate(texts))
    return rows(folder, "scrolls/qasper/validation.jsonl", content)


def papers(folder: Path) -> Path:
    content = (
        {"article_id": f"p{n}", "article_text": [f"Part {n} ."], "abstract_text": ["<S> A . </S>"]}
        for n in range(3)
    )
    return rows(folder, "scientific_papers/arxiv-dataset/val.txt", content)


def films(folder: Path) -> Path:
    """Returns a data directory with two annotated films of MuLD."""
    annotation = {
        "src segment": "It rains.", "ref segment": "Es regnet.", "segment id": 2,
        "errors": [{"contrastive": "Er regnet."}], "ante distance": 0,
    }  # fmt: skip
    film = {"output": ["Nun.", "Es regnet."], "metadata": json.dumps([annotation])}
    films = (film | {"input": f"{first}\nIt rains."} for first in ("Now.", "Then."))
    return rows(folder, "muld/opensubtitles_test.json.bz2", films)


def official(folder: Path, name: str) -> Path:
    """Writes the rows of a benchmark's golden prompts."""
    cases = json.loads((GOLDEN / "long_context_prompts.json").read_text(encoding="utf-8"))["cases"]
    row = next(case["row"] for case in cases if case["task"] == name)
    if name == "longbench_v2":
        return rows(folder, f"{name}/data.json", [[row]])
    return rows(folder, f"{name.replace('longbench/', 'longbench/data/')}.jsonl", [row])


def stories(folder: Path) -> Path:
    """Writes a story of bAbI with two questions."""
    lines = "1 Ina ran to the hall.\n2 Where is Ina?\thall\t1\n3 Where did Ina run?\thall\t1"
    return rows(folder, "babilong/qa1_single-supporting-fact_train.txt", [lines])


def problems(folder: Path) -> Path:
    """Writes two problems of PAN, of which one has a solution."""
    truth = {"site": "a", "structure": ["A"], "paragraph-authors": [1, 2], "multi-author": 1}
    texts: Mapping[str, Any] = {"problem-1.txt": STORY, "problem-2.txt": STORY}
    for name, content in {**texts, "truth-problem-1.json": truth}.items():
        rows(folder, name, [content])
    return folder


MAKERS: Mapping[str, Callable[[Path], Any]] = {
    "Babilong": lambda at: tasks.Babilong("qa1", samples=2, data=stories(at)),
    "ContraPro": lambda at: tasks.ContraPro(data=films(at)),
    "GraphWalks": lambda at: graph_walks(at, walk()),
    "Helmet": lambda at: tasks.Helmet("json_kv", 8192, data=helmet(at)),
    "InfiniteBench": lambda at: tasks.InfiniteBench(
        "code_run", data=official(at, "infinite_bench/code_run")
    ),
    "JsonLines": lambda at: tasks.JsonLines(write_rows(at / "rows.jsonl", *ASKED)),
    "LongBench": lambda at: tasks.LongBench("qasper", data=official(at, "longbench/qasper")),
    "LongBenchV2": lambda at: tasks.LongBenchV2(data=official(at, "longbench_v2")),
    "LooGLE": lambda at: tasks.LooGLE("longdep_qa", data=official(at, "loogle/longdep_qa")),
    "Mrcr": lambda at: mrcr(at, conversation()),
    "Muld": lambda at: tasks.Muld("vlsp", data=rows(at, "muld/vlsp_test.json.bz2", TALKS)),
    "NoLiMa": needles,
    "Pan21": lambda at: tasks.Pan21(problems(at)),
    "ReportSumSort": lambda at: tasks.ReportSumSort(write_rows(at / "rows.jsonl", *SORTED)),
    "Ruler": lambda _: tasks.Ruler("niah_multivalue", length=1024, samples=3),
    "Sample": lambda _: tasks.Sample(),
    "ScientificPapers": lambda at: tasks.ScientificPapers("arxiv", data=papers(at)),
    "Scrolls": lambda at: tasks.Scrolls("qasper", data=scrolls(at)),
    "ShuffleTest": lambda at: tasks.ShuffleTest(
        write_rows(at / "rows.jsonl", *SHUFFLED), (1, 2), 2
    ),
    "Table": lambda at: tasks.Table(write_rows(at / "rows.jsonl", *ASKED)),
    "ZeroScrolls": lambda at: tasks.ZeroScrolls(
        "qasper", data=rows(at, "zero_scrolls/qasper/validation.jsonl", STORIES)
    ),
}


class TestTasks(TaskContract):
    """Tasks with small data."""

    @pytest.fixture(params=tasks.__all__)
    def maker(self, request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
        """Maker of each exported task."""
        return lambda: MAKERS[request.param](tmp_path)
