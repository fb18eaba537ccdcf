"""Resampling: how far scores would spread over other examples, and whether two really differ.

All compared pipelines answered the same examples, so every resample takes the same ones from each
(paired). A resample is a row of counts, one an example; what a metric sums over examples is then
one matrix product, and thousands of resamples are quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]
# From sums, shape (resamples, columns), and counts, shape (resamples,), to scores (resamples,).
Scorer: TypeAlias = Callable[[Numbers, Numbers], Numbers]

_CELLS = 4_000_000  # resamples x examples that are held at once: 32 MB of counts


def _side_by_side(tables: Sequence[Numbers]) -> tuple[Numbers, list[int]]:
    """Returns tables as one, and the columns at which all but the first begin."""
    widths = np.cumsum([table.shape[1] for table in tables])[:-1]
    return np.hstack(tables), [*map(int, widths)]


def bootstrap(
    tables: Sequence[Numbers],
    scorer: Scorer,
    *,
    samples: int,
    seed: int,
    units: Sequence[int] | None = None,
) -> Numbers:
    """Returns the scores of pipelines over examples drawn with replacement.

    Args:
        tables: Tables of what the metric sums over examples, one a pipeline, shape (examples,
            columns).
        scorer: A function from sums to scores.
        samples: Number of resamples, each of as many examples as there are.
        seed: Seed of the draws.
        units: Number, from 0 on, of what each example is drawn with: the examples of one document
            are then drawn together; None draws each on its own.

    Returns:
        Shape (pipelines, samples).
    """
    combined, cuts = _side_by_side(tables)
    owner = _owners(tables[0], units)

    def scores(weights: Numbers) -> Numbers:
        counts = weights.sum(axis=1)
        parts = np.split(weights @ combined, cuts, axis=1)
        return np.stack([scorer(part, counts) for part in parts])

    drawn = _drawn(int(owner.max()) + 1, samples, np.random.default_rng(seed))
    return np.hstack([scores(weights[:, owner]) for weights in drawn])


def _owners(table: Numbers, units: Sequence[int] | None) -> NDArray[np.int64]:
    return np.arange(len(table)) if units is None else np.asarray(units, dtype=np.int64)


def _by_unit(table: Numbers, owner: NDArray[np.int64]) -> Numbers:
    """Returns the sums of the rows of each unit."""
    summed = np.zeros((int(owner.max()) + 1, table.shape[1]))
    np.add.at(summed, owner, table)
    return summed


def _drawn(units: int, samples: int, random: np.random.Generator) -> Iterator[Numbers]:
    """Yields how often each unit is drawn, shape (some resamples, units), until all are made."""
    step = max(1, _CELLS // units)
    for begin in range(0, samples, step):
        rows = min(step, samples - begin)
        picks = random.integers(0, units, size=(rows, units))
        picks += np.arange(rows)[:, None] * units
        counts = np.bincount(picks.ravel(), minlength=rows * units)
        yield counts.reshape(rows, units).astype(np.float64)


def randomisation(
    baseline: Numbers,
    others: Sequence[Numbers],
    scorer: Scorer,
    *,
    samples: int,
    seed: int,
    units: Sequence[int] | None = None,
) -> list[float]:
    """Returns the p-values of approximate randomisation, two-sided, of others against a baseline.

    If two pipelines are equally good, their answers to an example may change places: p is how
    often a random exchange parts their scores at least as far as they are apart, the observed
    one counted in (Riezler and Maxwell 2005).

    Args:
        baseline: Table of what the metric sums, shape (examples, columns).
        others: Tables of other pipelines over the same examples, each of that shape.
        scorer: A function from sums to scores.
        samples: Number of random exchanges.
        seed: Seed of the exchanges; each pipeline meets the same ones.
        units: Numbers as for `bootstrap`: examples of one unit change places together.
    """
    owner = _owners(baseline, units)
    both = [baseline.sum(axis=0) + other.sum(axis=0) for other in others]
    apart, cuts = _side_by_side([_by_unit(baseline - other, owner) for other in others])

    def differences(signs: Numbers) -> Numbers:
        counts = np.full(len(signs), float(len(baseline)))
        parted = np.split(signs @ apart, cuts, axis=1)
        pairs = [((b + p) / 2, (b - p) / 2) for b, p in zip(both, parted, strict=True)]
        return np.stack([abs(scorer(o, counts) - scorer(t, counts)) for o, t in pairs])

    # Sums in another order differ in their last digits: equal is not less.
    seen = differences(np.ones((1, len(apart)))) - _TINY
    drawn = _signs(len(apart), samples, np.random.default_rng(seed))
    extreme = sum((differences(signs) >= seen).sum(axis=1) for signs in drawn)
    return [float(p) for p in (extreme + 1) / (samples + 1)]


_TINY = 1e-9


def _signs(examples: int, samples: int, random: np.random.Generator) -> Iterator[Numbers]:
    """Yields 1 and -1 at random, shape (some resamples, examples), until all are made."""
    step = max(1, _CELLS // examples)
    for begin in range(0, samples, step):
        rows = min(step, samples - begin)
        bits = np.unpackbits(np.frombuffer(random.bytes(-(-rows * examples // 8)), np.uint8))
        yield 1 - 2 * bits[: rows * examples].reshape(rows, examples).astype(np.float64)


def p_of_bootstrap(differences: Numbers, seen: float) -> float:
    """Returns the p-value of a paired bootstrap as sacreBLEU (and Moses before it) computes it.

    The sizes of the resampled differences, less their mean, stand for the case that there is none;
    p is the share of them above the size of the difference seen, that one counted in. Two that
    never differ have 1, where sacreBLEU has the smallest p.

    Args:
        differences: Differences of two pipelines over resamples, shape (samples,).
        seen: Difference over the examples themselves.
    """
    sizes = abs(differences)
    if sizes.max() < _TINY:
        return 1.0
    above = np.count_nonzero(sizes - sizes.mean() > abs(seen))
    return float((above + 1) / (len(sizes) + 1))


def interval(resampled: Numbers, confidence: float = 0.95) -> tuple[float, float]:
    """Returns the ends of the percentile interval, to four decimals."""
    tail = 50 * (1 - confidence)
    low, high = np.percentile(resampled, [tail, 100 - tail])
    return round(float(low), 4), round(float(high), 4)


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values corrected for their number, in their order (Holm 1979)."""
    corrected, largest = [0.0] * len(p_values), 0.0
    ranked = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in enumerate(ranked):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected
