"""Compares the estimates of `tune` with scores on further documents.

    python -m benchmarks.tuning --data DATA [--task T …] [--metric M] [--pipeline P]
        [--budget 5m] [--repeats 10] --out FOLDER

Each repeat tunes on a random half of each task's documents, and scores the chosen point on the
other half. Each line has the score on the tuning documents, the estimate with its interval, the
score on further documents, and whether the interval contains this score; the last line has the
totals. An interval is for the score over very many documents, but the score over a few dozen varies
too, so the last column is whether the two intervals overlap. Run the same command again to resume.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from leporello.cache.store import Cache
from leporello.config import PipelineSpec, load_space
from leporello.config.space import Space
from leporello.core.files import cache_directory, read_json, write_json
from leporello.tuning.account import Account, parse_budget
from leporello.tuning.documents import TunedTask, tuned_task
from leporello.tuning.evaluation import Evaluator
from leporello.tuning.tune import Searches

TASKS = ("scrolls/qasper", "zero_scrolls/musique")
CHOICES = {
    "best-sentence": ("retriever.k=1,2,4,8,16", "chunker.size=20,50,100", "reader.sentences=1,2,3"),
    "default": ("retriever.retriever.k=6,12,24", "reader.threshold=-6.0,-4.0,-2.0"),
}


def halves(task: TunedTask, seed: int) -> tuple[TunedTask, TunedTask]:
    """Splits a task's documents into two random halves."""
    keys = sorted(task.documents)
    sample = {*random.Random(f"{task.name} {seed}").sample(keys, len(keys) // 2)}
    first, second = (
        {key: rows for key, rows in task.documents.items() if (key in sample) == is_first}
        for is_first in (True, False)
    )
    return replace(task, documents=first), replace(task, documents=second)


def repeat(
    space: Space, shipped: PipelineSpec, tasks: Sequence[TunedTask], budget: str, folder: Path
) -> dict[str, Any]:
    """Tunes on one half; returns the estimates, and the score on the other half."""
    file, cache = folder / "repeat.json", Cache(cache_directory())
    if file.exists():
        row: dict[str, Any] = read_json(file)
        return row
    folder.mkdir(parents=True, exist_ok=True)
    seed = int(folder.name)
    pairs = [halves(task, seed) for task in tasks]
    account = Account(budget, *parse_budget(budget))
    evaluator = Evaluator(folder, {t.name: t for t, _ in pairs}, cache, account, seed)
    searches = Searches(space, shipped, evaluator, "")
    tuned = searches.run(folder / "tuned.yaml")
    second = {task.name: task for _, task in pairs}
    further = Evaluator(folder / "further", second, cache, account, seed)
    best, documents = searches.finished[-1].best, {n: [*t.documents] for n, t in second.items()}
    measured = further.estimate(further.measured(best.pipeline, documents))
    row = {
        "points": tuned.points,
        "chosen on": tuned.score,
        "estimate": asdict(tuned.estimate),
        "optimism": tuned.optimism,
        "further": asdict(measured),
        "chosen": {**tuned.chosen},
    }
    write_json(file, row)
    return row


def _overlaps(interval: Sequence[float], low: float, high: float) -> bool:
    return interval[0] <= high and low <= interval[1]


def main() -> None:
    """Runs the repeats, and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--task", action="append")
    parser.add_argument("--metric", default="f1")
    parser.add_argument("--pipeline", default="best-sentence")
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.data:
        os.environ["LEPORELLO_DATA"] = str(options.data.absolute())
    loaded, space, shipped = load_space((), CHOICES[options.pipeline], options.pipeline)
    specs = loaded.tasks_named(options.task or TASKS)
    tasks = [tuned_task(task, options.metric, None) for task in specs]
    rows = []
    print(f"{'points':>6} {'chosen on':>9} {'estimate':>24} {'further':>8}  holds  meets")
    for number in range(options.repeats):
        row = repeat(space, shipped, tasks, options.budget, options.out / str(number))
        interval, further = row["estimate"]["interval"], row["further"]
        row["holds"] = _overlaps(interval, further["value"], further["value"])
        row["meets"] = _overlaps(interval, *further["interval"])
        rows.append(row)
        ends = f"{row['estimate']['value']:.2f} [{interval[0]:.1f}, {interval[1]:.1f}]"
        scores = f"{row['chosen on']:>9.2f} {ends:>24} {further['value']:>8.2f}"
        print(f"{row['points']:>6} {scores}  {row['holds']!s:>5}  {row['meets']!s:>5}", flush=True)
    print(json.dumps({name: sum(row[name] for row in rows) for name in ("holds", "meets")}))
    mean = sum(row["chosen on"] - row["further"]["value"] for row in rows) / len(rows)
    optimism = sum(row["optimism"] for row in rows) / len(rows)
    print(f"means: 'chosen on' minus 'further' {mean:+.2f}; estimated optimism {optimism:+.2f}")


if __name__ == "__main__":
    main()
