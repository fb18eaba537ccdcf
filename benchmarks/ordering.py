"""Ordering summaries, with their source and without: concordance on report_sum_sort.

    python -m benchmarks.ordering --data DIR [--out DIR] [--no-models]

DIR holds `other/report_sum_sort/data.jsonl`: 62 times five summaries of parts of one of 20 reports.
That is not BookSumSort, whose lists have 3 to 86 summaries and no source. Methods without the
source read with a model, so they get one example a report. Intervals are of a bootstrap over
reports. The same command again goes on with the runs in `--out`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np

from leporello.api import run
from leporello.config.metrics import metrics_of
from leporello.core.records import Example
from leporello.engine.journal.serialization import empty_prediction
from leporello.tasks import ReportSumSort

FILE = "other/report_sum_sort/data.jsonl"
MATCHED = tuple(f"report-sum-sort-{name}" for name in ("tfidf", "bm25", "dense"))
READ = tuple(f"zero-book-sum-sort-{name}" for name in ("pairs", "coherence"))
DRAWS = 10_000


def main() -> None:
    """Prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="holds other/report_sum_sort")
    parser.add_argument("--out", type=Path, help="where runs are kept; else nowhere")
    parser.add_argument("--no-models", action="store_true", help="leaves out what a model reads")
    given = parser.parse_args()
    print("| | concordance | examples | reports |\n|---|---|---|---|")
    print("| random order, by definition | 50.0 | | |")
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        table(given.data / FILE, given.out, models=not given.no_models)
    else:
        with tempfile.TemporaryDirectory() as folder:
            table(given.data / FILE, Path(folder), models=not given.no_models)


def table(path: Path, out: Path, models: bool) -> None:
    """Prints a row a method.

    Args:
        path: The task's file.
        out: Where runs are kept.
        models: Whether methods are measured that read.
    """
    examples = list(ReportSumSort(path).examples())
    row("the order as given", examples, {e.id: given_order(e) for e in examples})
    for name in MATCHED:
        row(name, examples, answers(name, path, out, source=True))
    if models:
        first = out / "first.jsonl"
        few = first_of_each(path, examples, first)
        row("the order as given", few, {e.id: given_order(e) for e in few})
        for name in READ:
            row(f"{name}, without the source", few, answers(name, first, out, source=False))


def first_of_each(path: Path, examples: Sequence[Example], place: Path) -> list[Example]:
    """Returns the first example on each report, and writes their rows."""
    firsts = {example.document.id: example for example in reversed(examples)}
    chosen = {example.id for example in firsts.values()}
    with path.open(encoding="utf-8") as lines:
        kept = [line for line in lines if line.strip() and json.loads(line)["id"] in chosen]
    place.write_text("".join(kept), encoding="utf-8")
    return [example for example in examples if example.id in chosen]


def answers(name: str, path: Path, out: Path, source: bool) -> dict[str, str]:
    """Returns what a pipeline answers to each example."""
    config = out / f"{name}.yaml"
    task = {"class": "ReportSumSort", "path": str(path.resolve()), "source": source}
    config.write_text(json.dumps({"tasks": {"sort": task}}), encoding="utf-8")
    done = run([name], ["sort"], config=[config], out=out / name)
    return {each.id: each.prediction for each in done.predictions(name, "sort")}


def given_order(example: Example) -> str:
    """Returns the summaries' ids as they are."""
    return ", ".join(str(number) for number in range(1, len(example.choices) + 1))


def row(name: str, examples: Sequence[Example], said: Mapping[str, str]) -> None:
    """Prints the mean concordance with its 95 % interval; what was not answered has 0."""
    metric = metrics_of(("concordance_index",))["concordance_index"]
    scores: dict[str, list[float]] = {}
    for example in examples:
        prediction = replace(empty_prediction(example), prediction=said.get(example.id, ""))
        statistics = metric.statistics(prediction, example)
        assert statistics
        scores.setdefault(example.document.id, []).append(metric.score(statistics))
    reports = list(scores.values())
    low, high = interval(reports)
    mean = fmean(score for report in reports for score in report)
    print(f"| {name} | {mean:.1f} [{low:.1f}, {high:.1f}] | {len(examples)} | {len(reports)} |")


def interval(reports: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Returns between which means 95 % of draws of as many reports lie."""
    chance = np.random.default_rng(0)
    sums = np.array([sum(report) for report in reports])
    counts = np.array([len(report) for report in reports])
    drawn = chance.integers(len(reports), size=(DRAWS, len(reports)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


if __name__ == "__main__":
    main()
