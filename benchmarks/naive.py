"""Learns SCROLLS' naive baselines from its train splits, and prints them as a config.

    python -m benchmarks.naive DATA > naive.yaml
    python run_pipeline.py run 'scrolls-naive-*' --config naive.yaml --data DATA
    python -m benchmarks.naive DATA --left-out

DATA holds `scrolls/NAME.zip` or `scrolls/NAME/train.jsonl`, of some of the tasks or of all. What is
learned: the mean of output / document in characters, the place where the right option of `quality`
stands most often, and the commonest answer to each hypothesis of `contract_nli` (Shaham et al.
2022, section 5.1). `--left-out` needs the validation splits alone: it scores each document's
examples with what all other documents teach, with 95 % intervals of a bootstrap over documents.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, get_args, get_type_hints

import numpy as np

from leporello import readers
from leporello.analysis.comparison.significance import bootstrap, interval
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.core.records import Example, Read
from leporello.engine.results.serialization import empty_prediction
from leporello.metrics import Resampled
from leporello.tasks import Scrolls

Stage = dict[str, Any]
SAMPLES = 10_000


def main() -> None:
    """Prints a pipeline for every task whose train split is there, and tells which is not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="where the benchmarks' files lie")
    parser.add_argument("--left-out", action="store_true", help="score, each document left out")
    given = parser.parse_args()
    data = given.data
    if given.left_out:
        for name in get_args(get_type_hints(Scrolls)["name"]):
            try:
                print(f"{name}: {left_out(Scrolls(name, data=data))}")
            except UserError as error:
                print(f"{name}: {error}", file=sys.stderr)
        return
    print("pipelines:")
    for name in get_args(get_type_hints(Scrolls)["name"]):
        if name == "quality_hard":  # answered by what all of quality teaches
            continue
        try:
            learned = pipeline(Scrolls(name, "train", data=data))
        except UserError as error:
            print(f"{name}: {error}", file=sys.stderr)
        else:
            print(f"  scrolls-naive-{name}: {json.dumps(learned, ensure_ascii=False)}")


def pipeline(task: Scrolls) -> Stage:
    """Returns the naive baseline of a task, learned from a split of it.

    Raises:
        UserError: The split is not there, or not sound.
    """
    return {"tasks": [f"scrolls/{task.name}"], "reader": reader(task)}


def reader(task: Scrolls, examples: Iterable[Example] | None = None) -> Stage:
    """Returns the reader of a task with what it has learned, of all examples if none are given."""
    learned = task.examples() if examples is None else examples
    match task.name:
        case "quality":
            return {"class": "MajorityOption", "option": commonest_option(learned)}
        case "contract_nli":
            return {"class": "MajorityAnswer", "answers": commonest_answers(learned)}
    return {"class": "Prefix", "share": mean_ratio(learned)}


def left_out(task: Scrolls) -> str:
    """Returns the score of each document's examples with what the others teach.

    Raises:
        UserError: The split is not there, or not sound.
    """
    metric, *_ = metrics_of(task.metrics).values()
    assert isinstance(metric, Resampled)
    examples = [example for example in task.examples() if not example.fault]
    texts = [example.document.text for example in examples]
    known = list(dict.fromkeys(texts))
    statistics = []
    for text in known:
        learned = reader(task, [e for e, t in zip(examples, texts, strict=True) if t != text])
        name = learned.pop("class")
        made = getattr(readers, name)(**learned)
        for example in (e for e, t in zip(examples, texts, strict=True) if t == text):
            whole = example.document.chunk(0, len(text))
            [output] = made.read([Read((whole,), example.question, choices=example.choices)])
            predicted = replace(empty_prediction(example), prediction=output.text)
            statistics.append(metric.statistics(predicted, example) or {})
    units = sorted(known.index(text) for text in texts)
    table, count = metric.summands(statistics), np.array([float(len(units))])
    score = float(metric.of_sums(table.sum(axis=0)[None], count)[0])
    [drawn] = bootstrap([table], metric.of_sums, samples=SAMPLES, seed=0, units=units)
    low, high = interval(drawn)
    return f"{score:.1f} [{low:.1f}, {high:.1f}], {len(units)} examples, {len(known)} documents"


def mean_ratio(examples: Iterable[Example]) -> float:
    """Returns the mean of output / document in characters; each reference is an output."""
    return fmean(
        len(reference) / len(example.document.text)
        for example in examples
        for reference in example.references
        if example.document.text
    )


def commonest_option(examples: Iterable[Example]) -> int:
    """Returns where the right option stands most often, from 1; the first of equals."""
    places: Counter[int] = Counter()
    for example in examples:
        places.update(example.choices.index(text) + 1 for text in example.references)
    return min(places, key=lambda place: (-places[place], place))


def commonest_answers(examples: Iterable[Example]) -> dict[str, str]:
    """Returns the commonest answer to each question; the first met of equals."""
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        answers[example.question].update(example.references)
    return {question: told.most_common(1)[0][0] for question, told in answers.items()}


if __name__ == "__main__":
    main()
