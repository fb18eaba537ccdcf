"""MuLD's style change: macro F1 of authors told apart by style, on halves of a file's documents.

    python -m benchmarks.style_change DATA [--split test] [--only greedy]

DATA holds `muld/style_change_SPLIT.json.bz2`. Five times, the documents are halved at random. On
the one half the pair classifier is trained, and the combiner's thresholds are chosen, by their F1
of task 3 on each third of it, read by a classifier that was trained on the other two. Then the
other half is scored. Much depends on which documents lie where, so all methods get the same
halves. Speed is that of the classifier, for all pairs of a document.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.chunkers import Parts
from leporello.combiners import AssignAuthors, ClusterAuthors
from leporello.config.metrics import metrics_of
from leporello.core.calls.stage_calls import divide
from leporello.core.records import JSON, Example, Hit, Output, Prediction, Read
from leporello.engine.journal.serialization import empty_prediction
from leporello.readers import PairClassifier
from leporello.readers.classical.stylometry import FAMILIES, Family
from leporello.tasks import Muld

HALVES, FOLDS = 5, 3
TASKS = ("pan21_task1", "pan21_task2", "pan21_task3")

Combiner = AssignAuthors | ClusterAuthors
Likeness = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Method:
    """A combiner with what is tried of its parameters, and what its classifier compares."""

    name: str
    combiner: Combiner
    tried: Mapping[str, Sequence[Any]]
    features: tuple[Family, ...] = FAMILIES

    def variants(self) -> list[Combiner]:
        """Returns the combiner with every combination of what is tried."""
        points = itertools.product(*self.tried.values())
        return [replace(self.combiner, **dict(zip(self.tried, p, strict=True))) for p in points]


ASSIGNED = {
    "change_threshold": (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7),
    "threshold": (0.0, 0.1, 0.3, 0.5, 0.7, 0.85, 0.95),
}
CLUSTERED = {"threshold": (0.3, 0.4, 0.5, 0.6), "change_penalty": (2.0, 5.0, 10.0, 20.0)}
STYLE = tuple(family for family in FAMILIES if family not in ("words", "characters"))
GREEDY = AssignAuthors(  # as pipelines.yaml has it
    compare="changed", context=5, smoothing=4, threshold=0.8, change_threshold=0.4
)
METHODS = (
    Method("greedy, as the paper", AssignAuthors(), ASSIGNED),
    Method("greedy, thresholds 0.5", AssignAuthors(), {}),
    Method("greedy, 5 paragraphs", AssignAuthors(context=5), ASSIGNED),
    Method("greedy, changed, 5", AssignAuthors(compare="changed", context=5), ASSIGNED),
    Method(
        "greedy, changed, 5, smoothed",
        AssignAuthors(compare="changed", context=5, smoothing=4),
        ASSIGNED,
    ),
    Method("greedy, muld-style-change", GREEDY, {}),
    Method("clustered, 1 paragraph", ClusterAuthors(context=1), CLUSTERED),
    Method("clustered, 3 paragraphs", ClusterAuthors(), CLUSTERED),
    Method("clustered, 3, as it is", ClusterAuthors(), {}),
    Method("clustered, 5 paragraphs", ClusterAuthors(context=5), CLUSTERED),
    Method("clustered, 3, 20 + 20", ClusterAuthors(neighbours=20, samples=20), CLUSTERED),
    Method("clustered, 3, no n-grams", ClusterAuthors(), CLUSTERED, STYLE),
)


def main() -> None:
    """Prints the means over the halves, and each half."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="where the benchmarks' files lie")
    parser.add_argument("--split", default="test")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="methods whose names begin so")
    given = parser.parse_args()
    examples = list(Muld("style_change", given.split, data=given.data).examples())
    print(f"{len(examples)} documents, {speed(examples):,.0f} pairs/s in one thread")
    with ProcessPoolExecutor(given.processes) as pool:
        halves = list(pool.map(partial(scores, given.data, given.split, given.only), range(HALVES)))
    for name in halves[0]:
        rows = [[half[name][task] for half in halves] for task in TASKS]
        means = "  ".join(f"{statistics.fmean(row):5.1f}" for row in rows)
        each = " ".join(f"{score:5.1f}" for score in rows[-1])
        print(f"{name:26} tasks 1, 2, 3: {means}   task 3 by half: {each}")


def scores(data: Path, split: str, only: str, seed: int) -> dict[str, dict[str, float]]:
    """Returns the F1 of each task by each method on one half, trained on the other."""
    examples = list(Muld("style_change", split, data=data).examples())
    random.Random(seed).shuffle(examples)
    middle = len(examples) // 2
    seen, unseen = examples[:middle], examples[middle:]
    constant: dict[str, JSON] = {e.id: [1 for _ in e.document.parts] for e in unseen}
    found = {"always author 1": f1(unseen, constant)}
    read: dict[Any, tuple[Likeness, Likeness]] = {}
    for method in (each for each in METHODS if each.name.startswith(only)):
        pairs = method.combiner.pairs, method.features
        if pairs not in read:
            crossed, classifier = cross_fitted(method, seen), trained(method, seen)
            read[pairs] = crossed, {e.id: compared(method, classifier, e) for e in unseen}
        found[method.name] = chosen_and_scored(method, seen, unseen, *read[pairs])
    return found


def chosen_and_scored(
    method: Method,
    seen: Sequence[Example],
    unseen: Sequence[Example],
    known: Likeness,
    new: Likeness,
) -> dict[str, float]:
    """Returns the F1 on the one half of the variant that is best on the other."""

    def decided(
        variant: Combiner, examples: Sequence[Example], likeness: Likeness
    ) -> dict[str, float]:
        return f1(examples, {e.id: variant.decide(likeness[e.id]) for e in examples})

    variants = method.variants()
    best = max(variants, key=lambda variant: decided(variant, seen, known)[TASKS[-1]])
    return decided(best, unseen, new)


def cross_fitted(method: Method, examples: Sequence[Example]) -> Likeness:
    """Returns what classifiers say to documents that they were not trained on."""
    found: dict[str, NDArray[np.float64]] = {}
    for fold in range(FOLDS):
        held = examples[fold::FOLDS]
        classifier = trained(method, [e for e in examples if e not in held])
        found |= {e.id: compared(method, classifier, e) for e in held}
    return found


def trained(method: Method, examples: Sequence[Example]) -> PairClassifier:
    """Returns a pair classifier trained as `train` does."""
    inputs: list[Read] = []
    targets: list[str] = []
    for example in examples:
        reads = asked(method.combiner, example)
        wanted = zip(reads, method.combiner.supervise(example, reads), strict=True)
        for read, target in ((read, target) for read, target in wanted if target):
            inputs.append(read)
            targets.append(target)
    with tempfile.TemporaryDirectory() as folder:
        PairClassifier(features=method.features).learn(inputs, targets, Path(folder))
        classifier = PairClassifier(str(Path(folder) / "model"))
        classifier.load()
    return classifier


def asked(combiner: Combiner, example: Example) -> Sequence[Read]:
    """Returns the pairs that a combiner wants read."""
    hits = [Hit(chunk, 0.0) for chunk in divide(Parts(), example.document)]
    flight: Any = combiner.combine(example.without_gold(), hits)
    reads: Sequence[Read] = next(flight)
    return reads


def compared(method: Method, classifier: PairClassifier, example: Example) -> NDArray[np.float64]:
    """Returns the probabilities of `same` for the pairs of a document."""
    outputs: list[Output] = classifier.read(asked(method.combiner, example))
    return method.combiner.pairs.likeness(outputs, len(example.document.parts))


def f1(examples: Sequence[Example], answers: Mapping[str, JSON]) -> dict[str, float]:
    """Returns the macro F1 of each task."""
    [metric] = metrics_of(["pan21"]).values()
    rows = [metric.statistics(_predicted(e, answers[e.id]), e) for e in examples]
    return metric.aggregate([row for row in rows if row])


def _predicted(example: Example, answer: JSON) -> Prediction:
    return replace(empty_prediction(example), prediction=json.dumps(answer))


def speed(examples: Sequence[Example]) -> float:
    """Returns the median of pairs a second, over the largest documents."""
    method = METHODS[0]
    classifier = trained(method, examples)
    largest = sorted(examples, key=lambda e: -len(e.document.parts))[:HALVES]
    return statistics.median(_speeds(method, classifier, largest))


def _speeds(
    method: Method, classifier: PairClassifier, examples: Sequence[Example]
) -> Iterator[float]:
    for example in examples:
        reads = asked(method.combiner, example)
        started = time.perf_counter()
        classifier.read(reads)
        yield len(reads) / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
