"""What the confidence of answers is worth."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.jobs.confidence import SELECTIVITY_KEYS, reliability, scores_by_coverage, selectivity

SURE = st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.0, 50.0, 100.0]))


def test_the_surest_answers_come_first() -> None:
    """By hand: right, wrong, right at 0.9, 0.6 and 0.1; risks 0, 1/2 and 1/3."""
    answers = [(0.6, 0.0), (0.1, 100.0), (0.9, 100.0)]
    assert scores_by_coverage(answers) == pytest.approx([100, 50, 200 / 3])
    told = selectivity(answers, withheld=2)
    assert told["aurc"] == pytest.approx((0 + 1 / 2 + 1 / 3) / 3, abs=1e-4)
    assert told["at_50"] == 50  # two of three
    assert told["ece"] == pytest.approx(abs(1.6 / 3 - 2 / 3), abs=1e-4)  # too few for two bins
    assert (told["answers"], told["withheld"]) == (3, 2)
    assert selectivity([]) == {}


def test_calibrated_answers_have_little_error() -> None:
    """Of 20,000 answers as likely as they say; twice as sure ones have much."""
    numbers = random.Random(1)
    sure = [numbers.random() / 2 for _ in range(20_000)]
    answers = [(c, 100.0 * (numbers.random() < c)) for c in sure]
    assert selectivity(answers)["ece"] < 0.015
    doubled = selectivity([(2 * c, s) for c, s in answers])
    assert doubled["ece"] == pytest.approx(0.25, abs=0.01)
    assert doubled["aurc"] == pytest.approx(selectivity(answers)["aurc"], abs=1e-3)


@given(st.lists(SURE, min_size=1, max_size=80), st.randoms())
def test_no_order_of_equals_counts(
    answers: list[tuple[float, float]], order: random.Random
) -> None:
    """Each answer stands in one bin, with those that are as sure."""
    told = selectivity(answers)
    assert {*told} <= {*SELECTIVITY_KEYS}
    bins = [own for own, _, _ in reliability(answers)]
    assert sorted(one for own in bins for one in own) == sorted(answers)
    levels = [{sure for sure, _ in own} for own in bins]
    assert sum(map(len, levels)) == len(set.union(*levels))
    order.shuffle(answers)
    assert selectivity(answers) == pytest.approx(told)
