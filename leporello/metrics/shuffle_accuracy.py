"""Accuracy of the Shuffle Test: how often a text scores higher than a shuffle of it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any, ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import Statistics

_TIE = 1e-4  # as large a difference is none to the authors
_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class ShuffleAccuracy:
    """The share of pairs of a text and a shuffle whose text has the higher score, a block size.

    As the authors count: pairs whose scores differ by no more than 0.0001 are the `same` and not
    right, nor is a document of one block, which cannot be shuffled. A pair one of whose texts
    failed or has no score is `missing`, and not right either.

    Pairs of one document are not independent: they share the original. So the 95 % interval is
    Wilson's with as many pairs as independent ones would do (the pairs divided by the design
    effect), no fewer than there are documents.
    """

    headline: ClassVar[str] = "shuffle_accuracy"
    name: ClassVar[str] = "shuffle_accuracy"
    signature: ClassVar[str] = (
        "shuffle_accuracy|tie:0.0001|same:wrong|missing:wrong|mean:block-sizes"
        "|interval:wilson-95-clustered-by-document|version:1"
    )

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns whose text it is, its `block_size` (0 of an original) and its `score`.

        None for an example that is of no shuffle test.
        """
        gold = example.metadata.get("gold")
        shuffle = gold.get("shuffle_test") if isinstance(gold, Mapping) else None
        if not isinstance(shuffle, Mapping):
            return None
        return {**shuffle, "score": _number(prediction.prediction)}

    def parses(self, text: str, example: Example) -> bool:  # noqa: ARG002 -- as every metric's
        """Says whether a text is a number."""
        return _number(text) is not None

    def score(self, statistics: Statistics) -> float:
        """Returns 100 if the text has a score, else 0: alone it is neither right nor wrong."""
        return 100.0 * (statistics["score"] is not None)

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the accuracy of each block size, their mean, and the ends of their intervals.

        `accuracy[3]`, `low[3]`, `high[3]` are those of blocks of three sentences; `same` and
        `missing` are percentages of all pairs.
        """
        tags = _tags(statistics)
        if not tags:
            return {}
        right = {size: _right(tags[size]) for size in sorted(tags)}
        shares = {size: fmean(_flat(right[size])) for size in right}
        scores = {self.name: fmean(shares.values())}
        scores |= {f"accuracy[{size}]": share for size, share in shares.items()}
        for size, documents in right.items():
            scores[f"low[{size}]"], scores[f"high[{size}]"] = interval(documents)
        every = [tag for documents in tags.values() for tag in _flat(documents.values())]
        scores |= {name: every.count(name) / len(every) for name in ("same", "missing")}
        return {name: round(100 * score, 4) for name, score in scores.items()}


def tag(difference: float) -> str:
    """Returns what the authors say of the original's score less the shuffle's."""
    if abs(difference) <= _TIE:
        return "same"
    return "good" if difference > 0 else "bad"


def interval(documents: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """Returns the ends of the 95 % interval of the share that is right, 0 to 1.

    Args:
        documents: Flags of each document, one a pair: whether the original was put first; none is
            empty.
    """
    pairs, clusters = sum(map(len, documents)), len(documents)
    share = fmean(_flat(documents))
    strays = sum((sum(verdicts) - share * len(verdicts)) ** 2 for verdicts in documents)
    effective = float(clusters)
    if strays and clusters > 1:
        # In a simulation it held the truth in 90 to 97 %; over pairs, as few as 54 (decision 21).
        variance = clusters / (clusters - 1) * strays / pairs**2
        effective = min(max(share * (1 - share) / variance, clusters), pairs)
    return _wilson(share, effective)


def _wilson(share: float, count: float) -> tuple[float, float]:
    weight = _Z**2 / count
    middle = (share + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * share * (1 - share) + weight**2 / 4) / (1 + weight)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def _tags(statistics: Sequence[Statistics]) -> dict[int, dict[str, list[str]]]:
    """Returns what is said of every pair, by block size and document."""
    tags: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    originals = {s["document"]: s["score"] for s in statistics if not s["block_size"]}
    for row in statistics:
        if row["block_size"]:
            verdict = _tag(originals.get(row["document"]), row)
            tags[row["block_size"]][row["document"]].append(verdict)
    return tags


def _tag(original: float | None, shuffle: Statistics) -> str:
    if shuffle["unchanged"]:  # whatever a model makes of the same text twice
        return "same"
    if original is None or shuffle["score"] is None:
        return "missing"
    return tag(original - shuffle["score"])


def _right(documents: Mapping[str, Sequence[str]]) -> list[list[bool]]:
    return [[verdict == "good" for verdict in verdicts] for verdicts in documents.values()]


def _flat(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return [item for items in lists for item in items]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
