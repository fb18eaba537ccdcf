"""Resamples scores, for confidence intervals and for tests of differences between pipelines.

All pipelines answered the same examples, so every resample draws the same examples for each of
them (paired). A resample is a row with one count per example. The sums of a metric over many
resamples are then one matrix product, which is fast.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.float64]
# From sums, shape (resamples, columns), and counts, shape (resamples,), to scores (resamples,).
Scorer: TypeAlias = Callable[[Numbers, Numbers], Numbers]

_CELLS = 4_000_000  # resamples x examples in memory at a time: 32 MB of counts


def _side_by_side(tables: Sequence[Numbers]) -> tuple[Numbers, list[int]]:
    """Returns joined tables, and the columns at which all but the first begin."""
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
    """Returns the scores of pipelines over examples drawn with replacement: (pipelines, samples).

    Tables have the summands of a metric, shape (examples, columns). The examples of a unit, such as
    a document, have the same number from 0, and are drawn together; None draws examples
    independently.
    """
    combined, cuts = _side_by_side(tables)
    owner = _owners(tables[0], units)

    def scores(weights: Numbers) -> Numbers:
        counts = weights.sum(axis=1)
        parts = np.split(weights @ combined, cuts, axis=1)
        return np.stack([scorer(part, counts) for part in parts])

    resamples = _draw_counts(int(owner.max()) + 1, samples, np.random.default_rng(seed))
    return np.hstack([scores(weights[:, owner]) for weights in resamples])


def _owners(table: Numbers, units: Sequence[int] | None) -> NDArray[np.int64]:
    return np.arange(len(table)) if units is None else np.asarray(units, dtype=np.int64)


def _by_unit(table: Numbers, owner: NDArray[np.int64]) -> Numbers:
    summed = np.zeros((int(owner.max()) + 1, table.shape[1]))
    np.add.at(summed, owner, table)
    return summed


def _draw_counts(units: int, samples: int, random: np.random.Generator) -> Iterator[Numbers]:
    """Yields how often each unit is drawn, in blocks of shape (resamples, units)."""
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

    If two pipelines are equally good, their answers to an example can be swapped. The p-value is
    the share of `samples` random swaps that yield a difference at least as large as the observed
    one, which is counted as a swap too (Riezler and Maxwell 2005). Tables have the shape (examples,
    columns). The examples of a unit (see `bootstrap`) are swapped together, the same for each
    pipeline.
    """
    owner = _owners(baseline, units)
    sums = [baseline.sum(axis=0) + table.sum(axis=0) for table in others]
    gaps, cuts = _side_by_side([_by_unit(baseline - table, owner) for table in others])

    def differences(signs: Numbers) -> Numbers:
        counts = np.full(len(signs), float(len(baseline)))
        swapped = np.split(signs @ gaps, cuts, axis=1)
        pairs = [((b + s) / 2, (b - s) / 2) for b, s in zip(sums, swapped, strict=True)]
        return np.stack([abs(scorer(o, counts) - scorer(t, counts)) for o, t in pairs])

    # The order of a sum changes its last digits: tolerate them, so that ties count.
    observed = differences(np.ones((1, len(gaps)))) - _TINY
    blocks = _signs(len(gaps), samples, np.random.default_rng(seed))
    extreme = sum((differences(signs) >= observed).sum(axis=1) for signs in blocks)
    return [float(p) for p in (extreme + 1) / (samples + 1)]


_TINY = 1e-9


def _signs(examples: int, samples: int, random: np.random.Generator) -> Iterator[Numbers]:
    """Yields random values 1 and -1, in blocks of shape (resamples, examples)."""
    step = max(1, _CELLS // examples)
    for begin in range(0, samples, step):
        rows = min(step, samples - begin)
        bits = np.unpackbits(np.frombuffer(random.bytes(-(-rows * examples // 8)), np.uint8))
        yield 1 - 2 * bits[: rows * examples].reshape(rows, examples).astype(np.float64)


def p_of_bootstrap(differences: Numbers, observed: float) -> float:
    """Returns the p-value of a paired bootstrap as sacreBLEU (and Moses before it) computes it.

    The absolute resampled differences, shape (samples,), minus their mean approximate the null
    hypothesis. The p-value is the share of them above the observed difference, which is counted
    too. For pipelines that never differ it is 1, unlike in sacreBLEU, which returns the smallest
    p-value.
    """
    sizes = abs(differences)
    if sizes.max() < _TINY:
        return 1.0
    extreme = np.count_nonzero(sizes - sizes.mean() > abs(observed))
    return float((extreme + 1) / (len(sizes) + 1))


def interval(resampled: Numbers) -> tuple[float, float]:
    """Returns the ends of the 95 % percentile interval, rounded to four decimals."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return round(float(low), 4), round(float(high), 4)


def holm(p_values: Sequence[float]) -> list[float]:
    """Returns p-values, in the same order, corrected for multiple tests (Holm 1979)."""
    corrected, largest = [0.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected
