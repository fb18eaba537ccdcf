"""Scores SCROLLS' naive baselines on each document, learned from all other documents.

    python -m benchmarks.naive DATA

DATA contains `scrolls/NAME.zip` or `scrolls/NAME/validation.jsonl` of some or all tasks. The 95 %
intervals are by a bootstrap over documents. `train naive --suite scrolls` makes the paper's row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np

from leporello.analysis.comparison.significance import bootstrap, interval
from leporello.config import load_config
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.core.records import Example, Read
from leporello.engine.results.finished import empty_prediction
from leporello.metrics import Resampled
from leporello.tasks import Scrolls

SAMPLES = 10_000


def main() -> None:
    """Prints the score of every task, and reports missing splits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the benchmarks' files")
    data = parser.parse_args().data
    for name in get_args(get_type_hints(Scrolls)["name"]):
        if name == "quality_hard":  # uses the baseline of quality
            continue
        try:
            print(f"{name}: {left_out(Scrolls(name, data=data))}")
        except UserError as error:
            print(f"{name}: {error}", file=sys.stderr)


def left_out(task: Scrolls) -> str:
    """Returns the score of all examples, with readers learned from the other documents.

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
    [point] = load_config().select([f"scrolls-naive-{task.name}"])
    untrained = point.build().reader
    statistics = []
    for text in documents:
        others = [e for e, t in zip(examples, texts, strict=True) if t != text]
        naive = replace(untrained, **_learned(untrained, others))
        for example in (e for e, t in zip(examples, texts, strict=True) if t == text):
            [output] = naive.read([_read(example)])
            prediction = replace(empty_prediction(example), prediction=output.text)
            statistics.append(metric.statistics(prediction, example) or {})
    units = sorted(documents.index(text) for text in texts)
    table, count = metric.summands(statistics), np.array([float(len(units))])
    score = float(metric.of_sums(table.sum(axis=0)[None], count)[0])
    [samples] = bootstrap([table], metric.of_sums, samples=SAMPLES, seed=0, units=units)
    low, high = interval(samples)
    return f"{score:.1f} [{low:.1f}, {high:.1f}], {len(units)} examples, {len(documents)} documents"


def _learned(reader: Any, examples: Sequence[Example]) -> Any:  # noqa: ANN401 -- its parameters
    pairs = [(_read(example), text) for example in examples for text in example.references]
    return reader.learn([read for read, _ in pairs], [text for _, text in pairs], Path())


def _read(example: Example) -> Read:
    chunk = example.document.chunk(0, len(example.document.text))
    return Read((chunk,), example.question, choices=example.choices)


if __name__ == "__main__":
    main()
