"""Learns SCROLLS' naive baselines from its train splits, and prints them as a config.

    python -m benchmarks.naive DATA > naive.yaml
    python run_pipeline.py run 'scrolls-naive-*' --config naive.yaml --data DATA
    python -m benchmarks.naive DATA --left-out

DATA contains `scrolls/NAME.zip` or `scrolls/NAME/train.jsonl` of some or all tasks. The baselines
learn the mean ratio of output to document in characters, the commonest position of the right option
of `quality`, and the commonest answer to each hypothesis of `contract_nli` (Shaham et al. 2022,
section 5.1). `--left-out` needs only the validation splits: it scores each document's examples with
baselines from all other documents, with 95 % intervals by a bootstrap over documents.
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
    """Prints a pipeline for every task with a train split, and reports missing splits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the benchmarks' files")
    parser.add_argument("--left-out", action="store_true", help="score with documents left out")
    options = parser.parse_args()
    data = options.data
    if options.left_out:
        for name in get_args(get_type_hints(Scrolls)["name"]):
            try:
                print(f"{name}: {left_out(Scrolls(name, data=data))}")
            except UserError as error:
                print(f"{name}: {error}", file=sys.stderr)
        return
    print("pipelines:")
    for name in get_args(get_type_hints(Scrolls)["name"]):
        if name == "quality_hard":  # uses the baseline of quality
            continue
        try:
            learnt = pipeline(Scrolls(name, "train", data=data))
        except UserError as error:
            print(f"{name}: {error}", file=sys.stderr)
        else:
            print(f"  scrolls-naive-{name}: {json.dumps(learnt, ensure_ascii=False)}")


def pipeline(task: Scrolls) -> Stage:
    """Returns the naive baseline of a task, learnt from one of its splits.

    Raises:
        UserError: The split is missing, or not valid.
    """
    return {"tasks": [f"scrolls/{task.name}"], "reader": reader(task)}


def reader(task: Scrolls, examples: Iterable[Example] | None = None) -> Stage:
    """Returns the reader of a task, learnt from examples; None for all examples."""
    training = task.examples() if examples is None else examples
    match task.name:
        case "quality":
            return {"class": "MajorityOption", "option": commonest_option(training)}
        case "contract_nli":
            return {"class": "MajorityAnswer", "answers": commonest_answers(training)}
    return {"class": "Prefix", "share": mean_ratio(training)}


def left_out(task: Scrolls) -> str:
    """Returns the score of all examples, with readers learnt from the other documents.

    Raises:
        UserError: The split is missing, not valid, or has references for one document only.
    """
    metric, *_ = metrics_of(task.metrics).values()
    assert isinstance(metric, Resampled)
    examples = [e for e in task.examples() if e.references and not e.fault]
    texts = [example.document.text for example in examples]
    documents = list(dict.fromkeys(texts))
    if len(documents) < 2:
        raise UserError("fewer than two documents have references; add others to the split")
    statistics = []
    for text in documents:
        learnt = reader(task, [e for e, t in zip(examples, texts, strict=True) if t != text])
        name = learnt.pop("class")
        naive = getattr(readers, name)(**learnt)
        for example in (e for e, t in zip(examples, texts, strict=True) if t == text):
            chunk = example.document.chunk(0, len(text))
            [output] = naive.read([Read((chunk,), example.question, choices=example.choices)])
            prediction = replace(empty_prediction(example), prediction=output.text)
            statistics.append(metric.statistics(prediction, example) or {})
    units = sorted(documents.index(text) for text in texts)
    table, count = metric.summands(statistics), np.array([float(len(units))])
    score = float(metric.of_sums(table.sum(axis=0)[None], count)[0])
    [samples] = bootstrap([table], metric.of_sums, samples=SAMPLES, seed=0, units=units)
    low, high = interval(samples)
    return f"{score:.1f} [{low:.1f}, {high:.1f}], {len(units)} examples, {len(documents)} documents"


def mean_ratio(examples: Iterable[Example]) -> float:
    """Returns the mean ratio of references to documents in characters."""
    return fmean(
        len(reference) / len(example.document.text)
        for example in examples
        for reference in example.references
        if example.document.text
    )


def commonest_option(examples: Iterable[Example]) -> int:
    """Returns the commonest position of the right option, from 1; ties go to the first."""
    places: Counter[int] = Counter()
    for example in examples:
        places.update(example.choices.index(text) + 1 for text in example.references)
    return min(places, key=lambda place: (-places[place], place))


def commonest_answers(examples: Iterable[Example]) -> dict[str, str]:
    """Returns the commonest answer to each question; ties go to the first in the data."""
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        answers[example.question].update(example.references)
    return {question: counts.most_common(1)[0][0] for question, counts in answers.items()}


if __name__ == "__main__":
    main()
