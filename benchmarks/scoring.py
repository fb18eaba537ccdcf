"""What scoring costs: seconds and memory of each metric over very many predictions.

    python -m benchmarks.scoring [--predictions 100000] [--metric NAME] [--metric NAME:RULE] ...

RULE is the parameter of a metric that has several (`longbench:rouge_l_zh`).

Answers are of the kind that the metric is for: words of a story, summaries of `--words` words
against references as long, letters, percentages, orders, authors. Each metric has a process of its
own, which writes a task and its predictions, and scores them by `leporello score`; the peak is that
process', beside the peak over a tenth of the predictions.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from leporello.analysis.score import score
from leporello.tasks import Sample

LEFT_OUT = ("meteor_coco", "recall")  # takes seconds a text; is of what was selected
RULES = {
    "longbench": ("score_by", "f1 f1_zh rouge_l rouge_l_zh classification count code_similarity"),
    "infinite_bench": ("task", "longbook_qa_eng longbook_qa_chn longbook_sum_eng"),
}
CHINESE = "今天 天气 很 好 ， 会议 讨论 了 经济 发展 问题 。 我们 认为 市场 需要 更 多 时间 ；"
SHORT = 5  # words of an answer


def main() -> None:
    """Prints a line a metric."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--predictions", type=int, default=100_000)
    parser.add_argument("--metric", action="append")
    parser.add_argument("--words", type=int, default=100)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        measure(given.one, given.predictions, given.words)
        return
    from leporello.metrics import METRICS

    plain = [name for name in METRICS if name not in LEFT_OUT and name not in RULES]
    ruled = [f"{name}:{rule}" for name, (_, rules) in RULES.items() for rule in rules.split()]
    for name in given.metric or [*plain, *ruled]:
        few, all_ = (_in_a_process(name, n, given.words)
                     for n in (given.predictions // 10, given.predictions))  # fmt: skip
        print(f"{name:31} {all_['seconds']:7.1f} s, {all_['mb']:6.0f} MB; "
              f"{few['mb']:6.0f} MB over a tenth", flush=True)  # fmt: skip


def _in_a_process(name: str, count: int, words: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scoring", "--one", name]
    options = ["--predictions", str(count), "--words", str(words)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)  # noqa: S603 -- our own words
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(name: str, count: int, words: int) -> None:
    """Prints as JSON what scoring takes in this process."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        answers = kind_of(name, words)
        with (folder / "rows.jsonl").open("w") as rows, (folder / "given.jsonl").open("w") as given:
            for number in range(count):
                gold, answer, choices = answers(random.Random(number))
                row = {"id": str(number), "document": f"Of {number // 10}.", "references": [gold]}
                test = {"document": str(number // 101), "block_size": int(number % 101 > 0)}
                marks = {"labels": ["hall", "garden"], "shuffle_test": {**test, "unchanged": False}}
                others = {"question": "What?", "choices": choices, "metadata": {"gold": marks}}
                rows.write(json.dumps(row | others) + "\n")
                given.write(json.dumps({"id": str(number), "prediction": answer}) + "\n")
        metric, _, rule = name.partition(":")
        entry = {"class": metric, RULES[metric][0]: rule} if rule else metric
        task = {"class": "JsonLines", "path": "rows.jsonl", "metrics": [entry]}
        (folder / "own.yaml").write_text(json.dumps({"tasks": {"rows": task}}))
        began = time.monotonic()
        score(folder / "given.jsonl", "rows", config=[folder / "own.yaml"])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": time.monotonic() - began, "mb": peak}))


def kind_of(name: str, words: int) -> Callable[[random.Random], tuple[str, str, Sequence[str]]]:
    """Returns what makes a reference, an answer and choices, of the kind that a metric reads."""
    text = next(Sample().examples()).document.text.split()

    def span(draw: random.Random, length: int) -> str:
        start = draw.randrange(len(text) - 2 * length)
        return " ".join(text[start : start + length])

    def summaries(draw: random.Random) -> tuple[str, str, Sequence[str]]:
        return span(draw, words), span(draw, words), ()

    def chinese(draw: random.Random) -> tuple[str, str, Sequence[str]]:
        gold, answer = ("".join(draw.choices(CHINESE.split(), k=words)) for _ in "ab")
        return gold, answer, ()

    def short(draw: random.Random) -> tuple[str, str, Sequence[str]]:
        return span(draw, SHORT), span(draw, SHORT), ()

    def of(*forms: str) -> Callable[[random.Random], tuple[str, str, Sequence[str]]]:
        return lambda draw: (draw.choice(forms), draw.choice(forms), ())

    orders = [", ".join(random.Random(n).sample("12345678", 8)) for n in range(50)]
    authors = [json.dumps(random.Random(n).choices([1, 2, 3], k=40)) for n in range(50)]
    kinds = {
        "option_letter": of(*"ABCD"), "exponential_similarity": of("10%", "60%", "33%"),
        "concordance_index": of(*orders), "pan21": of(*authors), "f1_macro": of("Hero", "Villain"),
        "longbench_v2": of(*(f"The correct answer is ({letter})" for letter in "ABCD")),
        "loogle_cloze": of('{"<mask-0>": "Bo", "<mask-1>": "Al"}', '{"<mask-0>": "Bo"}'),
        "babilong_accuracy": of("hall", "garden"), "shuffle_accuracy": of("-1.5", "-2.25", "-3"),
        "longbench:count": of("3", "4", "12"),
    }  # fmt: skip
    if name.endswith(("_zh", "_chn")):
        return chinese
    return kinds.get(name, summaries if "rouge" in name or "_sum" in name else short)


if __name__ == "__main__":
    main()
