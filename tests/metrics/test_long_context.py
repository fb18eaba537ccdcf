"""Compares metrics of newer benchmarks with their official code, and tests oddities."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import GOLDEN
from scored import check_official, example_of, metric_named, prediction_of, score_of

from leporello import Example
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics import GoldError, Metric
from leporello.metrics.long_context.longbench import LongBenchScore
from leporello.tasks import InfiniteBench, LongBench
from leporello.tasks.long_context.infinite_bench import references

Case = Mapping[str, Any]
CASES: list[Case] = json.loads((GOLDEN / "long_context.json").read_text(encoding="utf-8"))


def metric_of(case: Case) -> Metric:
    if case["metric"] == "longbench":
        entries = LongBench(case["task"]).metrics
    elif case["metric"] == "infinite_bench":
        entries = InfiniteBench(case["task"], "gpt4" if "skip" in case else "yarn-mistral").metrics
    else:
        entries = (case["metric"],)
    return metric_named(case["metric"], entries)


def examples(case: Case) -> list[Example]:
    gold = case.get("references") or [
        references(case["task"], label, ()) for label in case["labels"]
    ]
    groups = case.get("groups", [("", "")] * len(gold))
    choices = tuple(case.get("choices", ()))
    metadata = ({"difficulty": difficulty, "length": length} for difficulty, length in groups)
    return [
        example_of(*texts, choices=choices, metadata=fields)
        for texts, fields in zip(gold, metadata, strict=True)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_scores_equal_the_official_code(case: Case) -> None:
    """Scores of examples, the total and other means are equal; official ones are rounded."""
    metric = metric_of(case)
    pairs = zip(case["predictions"], examples(case), strict=True)
    rows = [s for text, example in pairs if (s := metric.statistics(prediction_of(text), example))]
    rounded = {"longbench": 0.0051, "longbench_v2": 0.051, "loogle_cloze": 0.0051}
    check_official(metric, rows, case, rounded.get(case["metric"], 1e-4))


BAD_GOLD = [
    ({"class": "longbench", "score_by": "retrieval"}, "Chapter 3", "names no `Paragraph N`"),
    ("longbench_v2", "E", "is not one of A, B, C and D"),
    ({"class": "infinite_bench", "task": "code_run"}, "x", "are not valid for code_run"),
    ({"class": "infinite_bench", "task": "code_debug"}, "x", "are not valid for code_debug"),
    ({"class": "infinite_bench", "task": "math_find"}, "x", "are not valid for math_find"),
    ({"class": "infinite_bench", "task": "math_calc"}, "7", "are not valid for math_calc"),
    ("loogle_cloze", "Bob", "is not a JSON object of masks and texts"),
]


@pytest.mark.parametrize(("entry", "gold", "message"), BAD_GOLD)
def test_invalid_references_are_reported(
    entry: str | dict[str, Any], gold: str, message: str
) -> None:
    [metric] = metrics_of([entry]).values()
    with pytest.raises(GoldError, match=re.escape(message)):
        score_of(metric, "one 7", example_of(gold))


def test_no_code_of_an_answer_runs() -> None:
    """Code that the authors would run as Python is not an answer."""
    [metric] = metrics_of(["loogle_cloze"]).values()
    for text in ("dict([('<mask-0>', 'Bob')])", "{'<mask-0>': exit()}", "(" * 5000):
        assert score_of(metric, text, example_of('{"<mask-0>": "Bob"}')) == 0


def test_chinese_without_jieba_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jieba", None)
    with pytest.raises(UserError, match=r"leporello\[chinese\]"):
        LongBenchScore("rouge_l_zh")
