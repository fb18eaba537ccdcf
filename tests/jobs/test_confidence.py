"""Calibration and selectivity of confidence."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.jobs.results import SELECTIVITY_KEYS, reliability, scores_by_coverage, selectivity

ANSWERS = st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.0, 50.0, 100.0]))


def test_answers_are_ranked_by_confidence() -> None:
    """By hand: correct, wrong, correct at 0.9, 0.6 and 0.1; risks 0, 1/2 and 1/3."""
    answers = [(0.6, 0.0), (0.1, 100.0), (0.9, 100.0)]
    assert scores_by_coverage(answers) == pytest.approx([100, 50, 200 / 3])
    numbers = selectivity(answers, withheld=2)
    assert numbers["aurc"] == pytest.approx((0 + 1 / 2 + 1 / 3) / 3, abs=1e-4)
    assert numbers["at_50"] == 50  # two of three
    assert numbers["ece"] == pytest.approx(abs(1.6 / 3 - 2 / 3), abs=1e-4)  # too few for two bins
    assert (numbers["answers"], numbers["withheld"]) == (3, 2)
    assert selectivity([]) == {}


def test_calibrated_answers_have_a_small_error() -> None:
    """20,000 calibrated answers have a small error; with doubled confidence it is large."""
    chance = random.Random(1)
    confidences = [chance.random() / 2 for _ in range(20_000)]
    answers = [(c, 100.0 * (chance.random() < c)) for c in confidences]
    assert selectivity(answers)["ece"] < 0.015
    doubled = selectivity([(2 * c, s) for c, s in answers])
    assert doubled["ece"] == pytest.approx(0.25, abs=0.01)
    assert doubled["aurc"] == pytest.approx(selectivity(answers)["aurc"], abs=1e-3)


@given(st.lists(ANSWERS, min_size=1, max_size=80), st.randoms())
def test_the_order_of_equal_confidence_does_not_matter(
    answers: list[tuple[float, float]], order: random.Random
) -> None:
    """Answers with equal confidence belong to one bin."""
    numbers = selectivity(answers)
    assert {*numbers} <= {*SELECTIVITY_KEYS}
    bins = [in_bin for in_bin, _, _ in reliability(answers)]
    assert sorted(answer for in_bin in bins for answer in in_bin) == sorted(answers)
    levels = [{confidence for confidence, _ in in_bin} for in_bin in bins]
    assert sum(map(len, levels)) == len(set.union(*levels))
    order.shuffle(answers)
    assert selectivity(answers) == pytest.approx(numbers)
