"""How well confidence tells right answers from wrong ones.

Calibration error as Guo et al. 2017 have it, in bins of equal mass (Nixon et al. 2019); coverage
and risk as selective prediction has them (Geifman and El-Yaniv 2017). An answer is as right as its
score says, 0 to 100; where confidence is equal, no order counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from statistics import fmean
from typing import TypeAlias

# Of answers: (confidence 0 to 1, score 0 to 100).
Answers: TypeAlias = Sequence[tuple[float, float]]

_COVERAGES = (50, 80, 90)  # per cent
# What `selectivity` may say.
TOLD = ("answers", "withheld", "ece", "aurc", *(f"at_{share}" for share in _COVERAGES))
_BINS, _IN_BIN = 10, 10  # at most so many bins, of so many answers at least
_FULL = 100.0


def selectivity(answers: Answers, withheld: int = 0) -> dict[str, float]:
    """Returns what the confidence of answers is worth; empty where there are none.

    Returns:
        `ece`, the expected calibration error, and `aurc`, the area under the risk-coverage curve,
        0 to 1, the less the better; `at_50`, `at_80`, `at_90`: mean score of the surest half of the
        answers, and so on; the number of `answers`, and of those `withheld`, if any are.

    Args:
        answers: Answers that were given.
        withheld: Number of answers that were not given for want of confidence.
    """
    told: dict[str, float] = {"answers": len(answers), "withheld": withheld}
    told = {name: count for name, count in told.items() if count}
    if not answers:
        return told
    means = scores_by_coverage(answers)
    gaps = (len(own) * abs(_FULL * sure - score) for own, sure, score in reliability(answers))
    return {
        **told,
        "ece": round(sum(gaps) / _FULL / len(answers), 4),
        "aurc": round(1 - fmean(means) / _FULL, 4),
        **{f"at_{n}": round(means[-(-n * len(means) // 100) - 1], 4) for n in _COVERAGES},
    }


def reliability(answers: Answers) -> Iterator[tuple[Answers, float, float]]:
    """Yields bins of about as many answers each, with their mean confidence and mean score."""
    ranked = sorted(answers, key=itemgetter(0))
    count = max(1, min(_BINS, len(ranked) // _IN_BIN))
    start = 0
    for index in range(count):
        end = len(ranked) * (index + 1) // count
        while 0 < end < len(ranked) and ranked[end][0] == ranked[end - 1][0]:
            end += 1  # equals stand in one bin
        if own := ranked[start:end]:
            yield own, fmean(c for c, _ in own), fmean(s for _, s in own)
            start = end


def scores_by_coverage(answers: Answers) -> list[float]:
    """Returns the mean score of the surest answer, of the two surest ones, and so on."""
    ranked = sorted(answers, key=itemgetter(0), reverse=True)
    groups = (list(group) for _, group in groupby(ranked, key=itemgetter(0)))
    scores = (mean for own in groups for mean in [fmean(s for _, s in own)] * len(own))
    return [total / count for count, total in enumerate(accumulate(scores), 1)]
