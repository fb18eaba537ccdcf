"""Accuracy of the Shuffle Test: how often a text scores higher than a shuffle of it."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any

from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import Statistics, gold_entry

# Rounding differs between batches and machines, so tiny differences prove nothing.
_TIE = 1e-4  # differences up to this size count as ties, as for the authors
_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class ShuffleAccuracy:
    """Share of pairs of a text and a shuffle in which the text scores higher, per block size.

    As in the authors' code, pairs whose scores differ by at most 0.0001 are `same` and count
    as wrong. So does a document of one block, which cannot be shuffled. A pair is
    `missing`, and counts as wrong too, if one of its texts failed or has no score.

    Pairs of one document are not independent, since they share the original. The 95 % interval is
    therefore Wilson's with the effective number of independent pairs (the pairs divided by the
    design effect), at least the number of documents.
    """

    headline = "shuffle_accuracy"
    name = "shuffle_accuracy"
    signature = (
        # The rules are part of the name: scores under other rules must not compare.
        "shuffle_accuracy|tie:0.0001|same:wrong|missing:wrong|mean:block-sizes"
        "|interval:wilson-95-clustered-by-document|version:1"
    )

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the document, `block_size` (0 for an original) and `score` of a text."""
        shuffle = gold_entry(example, "shuffle_test")
        if not isinstance(shuffle, Mapping):
            return None
        return {**shuffle, "score": _number(prediction.prediction)}

    def score(self, statistics: Statistics) -> float:
        """Returns 100 if the text has a score, otherwise 0: only pairs are right or wrong."""
        return 100.0 * (statistics["score"] is not None)

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the accuracy of each block size, their mean, and bounds of the intervals.

        `accuracy[3]`, `low[3]` and `high[3]` are for blocks of three sentences; `same` and
        `missing` are percentages of all pairs.
        """
        verdicts = _verdicts(statistics)
        if not verdicts:
            return {}
        flags = {
            size: [[verdict == "good" for verdict in pairs] for pairs in verdicts[size].values()]
            for size in sorted(verdicts)
        }
        shares = {size: fmean(_flat(flags[size])) for size in flags}
        # The mean of sizes, not of pairs, so that short texts do not change the weights.
        scores = {self.name: fmean(shares.values())}
        scores |= {f"accuracy[{size}]": share for size, share in shares.items()}
        for size, documents in flags.items():
            scores[f"low[{size}]"], scores[f"high[{size}]"] = interval(documents)
        pairs = [pair for documents in verdicts.values() for pair in _flat(documents.values())]
        scores |= {name: pairs.count(name) / len(pairs) for name in ("same", "missing")}
        return {name: round(100 * score, 4) for name, score in scores.items()}


def interval(documents: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """Returns the bounds of the 95 % interval, 0 to 1, of the share of pairs that are True."""
    pairs, clusters = sum(map(len, documents)), len(documents)
    share = fmean(_flat(documents))
    # Pairs of a document share its original, so they are fewer than they look (decision 21).
    deviations = sum((sum(verdicts) - share * len(verdicts)) ** 2 for verdicts in documents)
    # If nothing varies, each document counts once. A bootstrap would return [100, 100] there,
    # and most results of this test are near 100 (decision 21).
    effective = float(clusters)
    if deviations and clusters > 1:
        # In simulations, 90 to 97 % of these intervals contain the true share; if pairs are taken
        # as independent, only 54 % do in the worst case.
        variance = clusters / (clusters - 1) * deviations / pairs**2
        effective = min(max(share * (1 - share) / variance, clusters), pairs)
    return _wilson(share, effective)


def _wilson(share: float, count: float) -> tuple[float, float]:
    # Wilson's interval stays within 0 and 1 and needs no seed.
    weight = _Z**2 / count
    middle = (share + weight / 2) / (1 + weight)
    half_width = math.sqrt(weight * share * (1 - share) + weight**2 / 4) / (1 + weight)
    return max(middle - half_width, 0.0), min(middle + half_width, 1.0)


def _verdicts(statistics: Sequence[Statistics]) -> dict[int, dict[str, list[str]]]:
    verdicts: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    originals = {s["document"]: s["score"] for s in statistics if not s["block_size"]}
    for row in statistics:
        if row["block_size"]:
            verdict = _verdict(originals.get(row["document"]), row)
            verdicts[row["block_size"]][row["document"]].append(verdict)
    return verdicts


def _verdict(original: float | None, shuffle: Statistics) -> str:
    """Returns the authors' verdict on the score of a shuffle."""
    if shuffle["unchanged"]:  # even if a model scores the same text differently
        return "same"
    if original is None or shuffle["score"] is None:
        # Not left out: a model that fails on hard texts would otherwise score higher.
        return "missing"
    if abs(original - shuffle["score"]) <= _TIE:
        return "same"
    return "good" if original > shuffle["score"] else "bad"


def _flat(lists: Iterable[Sequence[Any]]) -> list[Any]:
    return [item for items in lists for item in items]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
