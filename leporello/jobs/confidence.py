"""Measures how well confidence separates correct answers from wrong ones.

Calibration error follows Guo et al. 2017, with bins of equal mass (Nixon et al. 2019); coverage and
risk follow selective prediction (Geifman and El-Yaniv 2017). The score of an answer, 0 to 100, is
its degree of correctness. The order of answers with equal confidence does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from statistics import fmean
from typing import TypeAlias

# Pairs of confidence, 0 to 1, and score, 0 to 100.
Answers: TypeAlias = Sequence[tuple[float, float]]

_COVERAGES = (50, 80, 90)  # per cent
# Keys of the numbers that `selectivity` returns.
SELECTIVITY_KEYS = ("answers", "withheld", "ece", "aurc", *(f"at_{share}" for share in _COVERAGES))
# With fewer than ten answers, a bin's mean score is mostly chance.
_MOST_BINS, _LEAST_ANSWERS = 10, 10  # number of bins, and of answers per bin
_FULL = 100.0


def selectivity(answers: Answers, withheld: int = 0) -> dict[str, float]:
    """Returns the quality of the confidence of answers; empty without answers.

    Returns:
        `ece`, the expected calibration error, and `aurc`, the area under the risk-coverage curve,
        0 to 1, lower is better; `at_50`, `at_80`, `at_90`: mean score of the 50, 80 and 90 % of
        answers with the highest confidence; the numbers of `answers` and `withheld` answers,
        unless 0.

    Args:
        answers: Answers that were given.
        withheld: Number of answers that were withheld because of low confidence.
    """
    counts: dict[str, float] = {"answers": len(answers), "withheld": withheld}
    counts = {name: count for name, count in counts.items() if count}
    if not answers:
        return counts
    means = scores_by_coverage(answers)
    gaps = (len(group) * abs(_FULL * mean - score) for group, mean, score in reliability(answers))
    return {
        **counts,
        "ece": round(sum(gaps) / _FULL / len(answers), 4),
        "aurc": round(1 - fmean(means) / _FULL, 4),
        **{f"at_{n}": round(means[-(-n * len(means) // 100) - 1], 4) for n in _COVERAGES},
    }


def reliability(answers: Answers) -> Iterator[tuple[Answers, float, float]]:
    """Yields bins of about equal size, with their mean confidence and mean score."""
    ranked = sorted(answers, key=itemgetter(0))
    # Bins of few answers would show differences that are chance.
    count = max(1, min(_MOST_BINS, len(ranked) // _LEAST_ANSWERS))
    start = 0
    for index in range(count):
        end = len(ranked) * (index + 1) // count
        while 0 < end < len(ranked) and ranked[end][0] == ranked[end - 1][0]:
            end += 1  # equal confidence belongs to one bin
        if in_bin := ranked[start:end]:
            yield in_bin, fmean(c for c, _ in in_bin), fmean(s for _, s in in_bin)
            start = end


def scores_by_coverage(answers: Answers) -> list[float]:
    """Returns the mean scores of the 1, 2, … answers with the highest confidence."""
    ranked = sorted(answers, key=itemgetter(0), reverse=True)
    groups = (list(group) for _, group in groupby(ranked, key=itemgetter(0)))
    scores = (mean for group in groups for mean in [fmean(s for _, s in group)] * len(group))
    return [total / count for count, total in enumerate(accumulate(scores), 1)]
