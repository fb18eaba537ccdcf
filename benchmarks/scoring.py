"""Measures the seconds and memory of each metric over very many predictions.

    python -m benchmarks.scoring [--predictions 100000] [--metric NAME] [--metric NAME:RULE] ...

RULE is a parameter of metrics with several rules (`longbench:rouge_l_zh`).

Answers suit the metric: words of a story, summaries and references of `--words` words, letters,
percentages, orders, authors. For each metric, another process writes a task and its predictions,
and scores them as `leporello score` does. Printed are the peak memory of this process, and the peak
for a tenth of the predictions.
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

LEFT_OUT = ("meteor_coco", "recall")  # needs seconds per text; needs hits
RULES = {
    "longbench": ("score_by", "f1 f1_zh rouge_l rouge_l_zh classification count code_similarity"),
    "infinite_bench": ("task", "longbook_qa_eng longbook_qa_chn longbook_sum_eng"),
}
CHINESE = "今天 天气 很 好 ， 会议 讨论 了 经济 发展 问题 。 我们 认为 市场 需要 更 多 时间 ；"
SHORT = 5  # words of an answer


def main() -> None:
    """Prints one line per metric."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--predictions", type=int, default=100_000)
    parser.add_argument("--metric", action="append")
    parser.add_argument("--words", type=int, default=100)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.one, options.predictions, options.words)
        return
    from leporello.metrics import METRICS

    plain = [name for name in METRICS if name not in LEFT_OUT and name not in RULES]
    ruled = [f"{name}:{rule}" for name, (_, rules) in RULES.items() for rule in rules.split()]
    for name in options.metric or [*plain, *ruled]:
        few, all_ = (_in_a_process(name, n, options.words)
                     for n in (options.predictions // 10, options.predictions))  # fmt: skip
        print(f"{name:31} {all_['seconds']:7.1f} s, {all_['mb']:6.0f} MB; "
              f"{few['mb']:6.0f} MB over a tenth", flush=True)  # fmt: skip


def _in_a_process(name: str, count: int, words: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scoring", "--one", name]
    options = ["--predictions", str(count), "--words", str(words)]
    process = subprocess.run([*command, *options], capture_output=True, text=True, check=False)  # noqa: S603 -- this module
    if process.returncode:
        sys.exit(process.stderr)
    measurements: dict[str, float] = json.loads(process.stdout)
    return measurements


def measure(name: str, count: int, words: int) -> None:
    """Prints the seconds and memory of scoring in this process as JSON."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        answers = kind_of(name, words)
        with (
            (folder / "rows.jsonl").open("w") as rows,
            (folder / "given.jsonl").open("w") as predictions,
        ):
            for number in range(count):
                gold, answer, choices = answers(random.Random(number))
                row = {"id": str(number), "document": f"Of {number // 10}.", "references": [gold]}
                test = {"document": str(number // 101), "block_size": int(number % 101 > 0)}
                marks = {"labels": ["hall", "garden"], "shuffle_test": {**test, "unchanged": False}}
                extra = {"question": "What?", "choices": choices, "metadata": {"gold": marks}}
                rows.write(json.dumps(row | extra) + "\n")
                predictions.write(json.dumps({"id": str(number), "prediction": answer}) + "\n")
        metric, _, rule = name.partition(":")
        entry = {"class": metric, RULES[metric][0]: rule} if rule else metric
        task = {"class": "JsonLines", "path": "rows.jsonl", "metrics": [entry]}
        (folder / "own.yaml").write_text(json.dumps({"tasks": {"rows": task}}))
        start = time.monotonic()
        score(folder / "given.jsonl", "rows", config=[folder / "own.yaml"])
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"seconds": time.monotonic() - start, "mb": peak}))


def kind_of(name: str, words: int) -> Callable[[random.Random], tuple[str, str, Sequence[str]]]:
    """Returns a function that makes a reference, an answer and choices for a metric."""
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
