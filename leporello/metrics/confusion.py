"""Additive counts of right and wrong labels, and F1 scores of these counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from leporello.metrics.protocol import Numbers

Label = TypeVar("Label", bound=Hashable)
# By label: numbers of hits, misses (expected, not predicted) and extras (predicted, not expected).
Counts = Mapping[Label, tuple[int, int, int]]


def tally(pairs: Iterable[tuple[Label, Label | None]]) -> dict[Label, tuple[int, int, int]]:
    """Counts hits, misses and extras of each label.

    Args:
        pairs: Expected and predicted labels; None if no label was predicted.
    """
    hits: Counter[Label] = Counter()
    missed: Counter[Label] = Counter()
    extra: Counter[Label] = Counter()
    for truth, guess in pairs:
        if truth == guess:
            hits[truth] += 1
            continue
        missed[truth] += 1
        if guess is not None:
            extra[guess] += 1
    labels = dict.fromkeys([*hits, *missed, *extra])
    return {label: (hits[label], missed[label], extra[label]) for label in labels}


def f1_of(counts: tuple[float, float, float]) -> float:
    """Returns the F1 of a label, 0 to 1; 0 if the label does not occur."""
    hits, missed, extra = counts
    return 2 * hits / (2 * hits + missed + extra) if hits else 0.0


def macro(counts: Counts[Label], labels: Sequence[Label]) -> float:
    """Returns the mean F1 of these labels; labels that do not occur count as 0."""
    return fmean(f1_of(counts.get(label, (0, 0, 0))) for label in labels) if labels else 0.0


def micro(counts: Counts[Label], labels: Sequence[Label]) -> float:
    """Returns the F1 of the summed counts of these labels."""
    chosen = [counts.get(label, (0, 0, 0)) for label in labels]
    hits, missed, extra = map(sum, zip(*chosen, strict=True)) if chosen else (0, 0, 0)
    return f1_of((hits, missed, extra))


def columns(rows: Sequence[Counts[Label]], labels: Sequence[Label]) -> Numbers:
    """Returns the counts of these labels in each row, shape (rows, 3 x labels)."""
    import numpy as np

    table = [[n for label in labels for n in row.get(label, (0, 0, 0))] for row in rows]
    return np.array(table, dtype=np.float64).reshape(len(rows), 3 * len(labels))


def macro_of_sums(sums: Numbers, *, fixed: bool) -> Numbers:
    """Returns the mean F1 over labels, 0 to 1, for each row of sums of `columns`.

    Args:
        sums: Shape (resamples, 3 x labels).
        fixed: Whether labels that do not occur in a resample count as 0; they are left out if not.
    """
    import numpy as np

    hits, missed, extra = (sums[:, column::3] for column in range(3))
    occurs = (hits + missed + extra > 0) | fixed
    f1 = 2 * hits / np.maximum(2 * hits + missed + extra, 1)
    scores: Numbers = (f1 * occurs).sum(axis=1) / np.maximum(occurs.sum(axis=1), 1)
    return scores
