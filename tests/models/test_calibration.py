"""Calibration of scores to probabilities that answers are correct."""

import json
import random
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leporello.core.errors import UserError
from leporello.core.records import Output, Read
from leporello.models.calibration import Calibration, calibrated, fit, read_calibration
from leporello.readers import BestSentence, Embedded, Polarity


def test_a_fitted_calibration_predicts_how_often_answers_are_correct() -> None:
    numbers = random.Random(1)
    scores = [numbers.gauss(2, 2) for _ in range(3000)]
    shares = [float(numbers.random() < Calibration(0.5, -1).probability(s)) for s in scores]
    fitted = fit(scores, shares)
    assert fmean(map(fitted.probability, scores)) == pytest.approx(fmean(shares), abs=0.01)
    for score in (-1.0, 1.0, 3.0, 5.0):
        expected = Calibration(0.5, -1).probability(score)
        assert fitted.probability(score) == pytest.approx(expected, abs=0.08)
    probabilities = [fitted.probability(n / 4) for n in range(-100, 100)]
    assert all(a <= b for a, b in pairwise(probabilities))


@pytest.mark.integration
@given(st.lists(st.tuples(st.floats(-30, 30), st.floats(0, 1)), min_size=1, max_size=30))
def test_any_scores_can_be_fitted(pairs: list[tuple[float, float]]) -> None:
    fitted = fit(*zip(*pairs, strict=True))
    assert all(0 <= fitted.probability(score) <= 1 for score in (-1e9, 0.0, 7.5, 1e9))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "Expecting"),
        ("[]", "needs slope and offset"),
        ("{}", "needs slope and offset"),
        ('{"slope": -1, "offset": 0}', "slope >= 0"),
        ('{"slope": NaN, "offset": 0}', "must be numbers"),
    ],
)
def test_an_invalid_file_is_reported(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(content)
    with pytest.raises(UserError, match=message):
        BestSentence(calibration=file).check_files("")
    with pytest.raises(UserError, match="absent"):
        read_calibration(tmp_path / "absent.json")


def test_probabilities_are_corrected_and_scores_become_probabilities(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps({"slope": 0.5, "offset": 0.0}))
    likely, scored, silent = calibrated(
        [Output("a", 9.0, probability=0.9), Output("b", 0.0), Output("c")], file
    )
    assert likely.probability == pytest.approx(0.75)
    assert scored.probability == 0.5
    assert silent.probability is None
    file.write_text(json.dumps({"slope": 0.0, "offset": 0.0}))
    [output] = BestSentence(calibration=file).read([Read(("A cat sat.",), "cat?")])
    assert output.probability == pytest.approx(0.5)


@pytest.mark.integration
def test_built_in_readers_estimate_the_probability_of_their_answers() -> None:
    text = "Ann Dunning found the unread fax behind the boiler. She gave it to the Widow Frack."
    choices = ("yes", "no")
    reads = [
        Read((text,), "Who found the unread fax?"),
        Read((text,), "Who found the fax?", choices=("Ann Dunning", "the boiler")),
        Read((text,), "Ann Dunning found the fax."),
        Read((text,), "Who found the moon of Jupiter in 1610?"),
        Read((text,)),
    ]
    *outputs, summary = Embedded(unanswerable="?").read(reads)
    outputs += Polarity().read([Read((text,), choices=choices)])
    assert all(o.probability is not None and 0 < o.probability < 1 for o in outputs)
    assert summary.probability is None
