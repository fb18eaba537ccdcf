"""SpaceDigest: the share of positive reviews in a digest, zero-shot and learnt from the others.

    python -m benchmarks.space_digest DATA

DATA holds `zero_scrolls/space_digest/validation.jsonl`. Every digest's reviews are read one by one
by the reader of the pipeline `zero-space-digest-smollm2`, and what it says is kept in the cache.
What is learnt, is learnt from the other digests' percentages. Intervals are of 95 %, of a bootstrap
over digests; how one method differs from another is drawn from the same digests.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leporello.api import load_pipelines
from leporello.cache.store import Cache
from leporello.chunkers import Parts
from leporello.combiners import Percentage
from leporello.config.metrics import metrics_of
from leporello.core.calls.stage_calls import divide
from leporello.core.records import Example, Hit, Output, Read
from leporello.engine.journal.serialization import empty_prediction
from leporello.engine.reading import WindowReader
from leporello.models.locate import cache_directory
from leporello.readers import Calibrated
from leporello.tasks import ZeroScrolls
from leporello.text.log_odds import log_odds

DRAWS = 10_000
NEUTRAL = 20  # texts of words, of each digest
ZERO_SHOT = "zero-space-digest-smollm2"


@dataclass
class Kept:
    """The pipeline's reader, which reads everything once."""

    reader: WindowReader
    known: dict[Read, Output] = field(default_factory=dict)

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order."""
        if new := [read for read in inputs if read not in self.known]:
            for read, output in zip(new, self.reader.read(new), strict=True):
                assert isinstance(output, Output), output
                self.known[read] = output
        return [self.known[read] for read in inputs]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the words of each text."""
        return [len(text.split()) for text in texts]


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="where the benchmarks' files lie")
    given = parser.parse_args()
    examples = list(ZeroScrolls("space_digest", data=given.data).examples())
    rows = {name: scores(examples, found) for name, found in answers(examples).items()}
    half = rows["always 50 %"]
    print(f"| {len(examples)} digests | similarity | more than always 50 % |\n|---|---|---|")
    for name, row in rows.items():
        print(f"| {name} | {interval(row)} | {interval(row - half)} |")


def answers(examples: Sequence[Example]) -> dict[str, list[float]]:
    """Returns what each method answers to each digest."""
    [point] = load_pipelines().select([ZERO_SHOT])
    stages = point.build()
    kept = Kept(WindowReader(stages.reader.reader, Cache(cache_directory())))
    counted = stages.combiner
    own, pooled = replace(counted, neutral_texts=NEUTRAL), replace(counted, share="pooled")

    def by(combiner: Percentage, readers: Sequence[Kept | Calibrated]) -> list[float]:
        return [answer(combiner, r, e) for r, e in zip(readers, examples, strict=True)]

    alone = [kept] * len(examples)
    found = {
        "always 50 %": [50.0] * len(examples),
        "zero-shot: as the model says": by(counted, alone),
    }
    found["zero-shot: against words of the digest's own"] = by(own, alone)
    others = [[e for e in examples if e is not left_out] for left_out in examples]
    moved = [drawn(own, kept, rest) for rest in others]
    found["zero-shot: against words of the other digests"] = by(counted, moved)
    moved = [halved(counted, kept, rest) for rest in others]
    found["zero-shot: against the middle of the other digests' reviews"] = by(counted, moved)
    learnt = [learned(counted, kept, rest) for rest in others]
    found["learnt from the other digests' percentages: counted"] = by(counted, learnt)
    found["learnt from the other digests' percentages: pooled"] = by(pooled, learnt)
    every = learned(counted, kept, examples)
    print(f"offset of all digests' words {drawn(own, kept, examples).offset:.2f}")
    print(f"learnt from all digests: offset {every.offset:.2f}, slope {every.slope:.2f}\n")
    return found


def drawn(combiner: Percentage, reader: Kept, examples: Sequence[Example]) -> Calibrated:
    """Returns the reader so corrected that words drawn from these digests say nothing to it."""
    reads = [read for example in examples for read in rounds(combiner, reader, example)[1]]
    return Calibrated(reader, fmean(log_odds(o.scores) for o in reader.read(reads)))


def halved(combiner: Percentage, reader: Kept, examples: Sequence[Example]) -> Calibrated:
    """Returns the reader so corrected that it finds half of these digests' reviews positive."""
    reads = [read for example in examples for read in rounds(combiner, reader, example)[0]]
    return Calibrated(reader, median(log_odds(o.scores) for o in reader.read(reads)))


def learned(combiner: Percentage, reader: Kept, examples: Sequence[Example]) -> Calibrated:
    """Returns the reader corrected by these digests' percentages, as `train` has it."""
    inputs: list[Read] = []
    targets: list[str | None] = []
    for example in examples:
        [reads, *_] = rounds(combiner, reader, example)
        inputs += reads
        targets += combiner.supervise(example, reads)
    with tempfile.TemporaryDirectory() as folder:
        found: Any = Calibrated(reader).learn(inputs, [t for t in targets if t], Path(folder))
    return Calibrated(reader, **found)


def answer(combiner: Percentage, reader: Kept | Calibrated, example: Example) -> float:
    """Returns the percentage that a combiner answers."""
    value, _ = drive(combiner, reader, example)
    return float(value.removesuffix("%"))


def rounds(combiner: Percentage, reader: Kept, example: Example) -> list[Sequence[Read]]:
    """Returns what is read of a digest: its reviews, and words drawn from them."""
    return drive(combiner, reader, example)[1]


def drive(
    combiner: Percentage, reader: Kept | Calibrated, example: Example
) -> tuple[str, list[Sequence[Read]]]:
    """Returns a combiner's answer and the rounds that it read."""
    hits = [Hit(chunk, 0.0) for chunk in divide(Parts(), example.document)]
    flight: Any = combiner.combine(example.without_gold(), hits)
    read: list[Sequence[Read]] = []
    outputs: list[Output] | None = None
    while True:
        try:
            read.append(flight.send(outputs))
        except StopIteration as stop:
            return stop.value, read
        outputs = reader.read(read[-1])


def scores(examples: Sequence[Example], found: Sequence[float]) -> NDArray[np.float64]:
    """Returns the exponential similarity of each digest's answer."""
    [metric] = metrics_of(["exponential_similarity"]).values()
    rows = [
        metric.statistics(replace(empty_prediction(e), prediction=f"{p:.0f}%"), e)
        for e, p in zip(examples, found, strict=True)
    ]
    return np.array([metric.score(row) for row in rows if row])


def interval(values: NDArray[np.float64]) -> str:
    """Returns the mean with its interval."""
    drawn = np.random.default_rng(0).choice(values, (DRAWS, len(values))).mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{values.mean():.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
