"""Metrics of the newer benchmarks against the numbers of their official code, and what is odd."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from command_line import GOLDEN

from leporello import Coverage, Document, Example, Prediction
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.metrics import GoldError, Metric
from leporello.metrics.long_context.longbench import LongBenchScore
from leporello.tasks import InfiniteBench, LongBench
from leporello.tasks.long_context.infinite_bench import references

Case = Mapping[str, Any]
CASES: list[Case] = json.loads((GOLDEN / "long_context.json").read_text(encoding="utf-8"))


def metric_of(case: Case) -> Metric:
    """Returns the metric as the task of a case lists it."""
    if case["metric"] == "longbench":
        entries = LongBench(case["task"]).metrics
    elif case["metric"] == "infinite_bench":
        entries = InfiniteBench(case["task"], "gpt4" if "skip" in case else "yarn-mistral").metrics
    else:
        entries = (case["metric"],)
    try:
        return metrics_of(entries)[case["metric"]]
    except UserError as error:
        pytest.skip(str(error))


def predicted(text: str) -> Prediction:
    """Returns a prediction."""
    return Prediction("x", text, text, (), (), Coverage(0, 0, 0, 0), "")


def examples(case: Case) -> list[Example]:
    """Returns the examples of a case, references as the tasks give them."""
    gold = case.get("references") or [
        references(case["task"], label, ()) for label in case["labels"]
    ]
    groups = case.get("groups", [("", "")] * len(gold))
    return [
        Example(
            "x",
            Document("d", ""),
            references=tuple(texts),
            choices=tuple(case.get("choices", ())),
            metadata={"difficulty": difficulty, "length": length},
        )
        for texts, (difficulty, length) in zip(gold, groups, strict=True)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["id"]))
def test_scores_are_those_of_the_official_code(case: Case) -> None:
    """Each example's score, the total, and the totals beside it; theirs are rounded."""
    metric = metric_of(case)
    pairs = zip(case["predictions"], examples(case), strict=True)
    found = [s for text, example in pairs if (s := metric.statistics(predicted(text), example))]
    for statistics, expected in zip(found, case["per_example"], strict=True):
        if isinstance(expected, dict):
            assert statistics == pytest.approx(expected, abs=1e-9)
        else:
            assert metric.score(statistics) == pytest.approx(expected, abs=1e-9)
    scores = metric.aggregate(found)
    rounded = {"longbench": 0.0051, "longbench_v2": 0.051, "loogle_cloze": 0.0051}
    close = rounded.get(case["metric"], 1e-4)
    total = scores.get(metric.name, scores.get(metric.headline))
    assert total == pytest.approx(case["score"], abs=close)
    for name, mean in case.get("means", {}).items():
        assert scores[name] == pytest.approx(mean, abs=close)
    again = [json.loads(json.dumps(statistics)) for statistics in found]
    assert metric.aggregate(again) == scores


BAD_GOLD = [
    ({"class": "longbench", "score_by": "retrieval"}, "Chapter 3", "names no `Paragraph N`"),
    ("longbench_v2", "E", "is none of A, B, C and D"),
    ({"class": "infinite_bench", "task": "code_run"}, "x", "are none of code_run"),
    ({"class": "infinite_bench", "task": "code_debug"}, "x", "are none of code_debug"),
    ({"class": "infinite_bench", "task": "math_find"}, "x", "are none of math_find"),
    ({"class": "infinite_bench", "task": "math_calc"}, "7", "are none of math_calc"),
    ("loogle_cloze", "Bob", "is no JSON object of masks and texts"),
]


@pytest.mark.parametrize(("entry", "gold", "message"), BAD_GOLD)
def test_gold_that_cannot_be_scored_against_is_told(
    entry: str | dict[str, Any], gold: str, message: str
) -> None:
    """It is never taken for a wrong answer."""
    [metric] = metrics_of([entry]).values()
    with pytest.raises(GoldError, match=re.escape(message)):
        metric.statistics(predicted("one 7"), Example("x", Document("d", ""), references=(gold,)))


def test_no_code_of_an_answer_runs() -> None:
    """What the authors would run as Python is no answer here."""
    [metric] = metrics_of(["loogle_cloze"]).values()
    example = Example("x", Document("d", ""), references=('{"<mask-0>": "Bob"}',))
    for text in ("dict([('<mask-0>', 'Bob')])", "{'<mask-0>': exit()}", "(" * 5000):
        found = metric.statistics(predicted(text), example)
        assert found is not None
        assert metric.score(found) == 0


def test_chinese_without_jieba_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is read."""
    monkeypatch.setitem(__import__("sys").modules, "jieba", None)
    with pytest.raises(UserError, match=r"leporello\[chinese\]"):
        LongBenchScore("rouge_l_zh")
