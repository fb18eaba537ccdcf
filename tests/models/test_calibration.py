"""From scores to probabilities that answers are right."""

from __future__ import annotations

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
from leporello.models.calibration import Calibration, Method, calibrated, fit, read_calibration
from leporello.readers import BestSentence, Embedded, Polarity


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_what_is_fitted_says_how_often_answers_are_right(method: Method) -> None:
    """Of answers that a score says too much of, the means agree; the map never falls."""
    numbers = random.Random(1)
    scores = [numbers.gauss(2, 2) for _ in range(3000)]
    right = [float(numbers.random() < Calibration(0.5, -1).probability(s)) for s in scores]
    fitted = fit(method, scores, right)
    assert fmean(map(fitted.probability, scores)) == pytest.approx(fmean(right), abs=0.01)
    for score in (-1.0, 1.0, 3.0, 5.0):
        wanted = Calibration(0.5, -1).probability(score)
        assert fitted.probability(score) == pytest.approx(wanted, abs=0.08)
    told = [fitted.probability(n / 4) for n in range(-100, 100)]
    assert all(a <= b for a, b in pairwise(told))
    assert Calibration.from_row(json.loads(json.dumps(fitted.row()))) == fitted


@pytest.mark.integration
@given(st.lists(st.tuples(st.floats(-30, 30), st.floats(0, 1)), min_size=1, max_size=30))
def test_anything_can_be_fitted(pairs: list[tuple[float, float]]) -> None:
    """One answer, equal scores, scores that fall as answers get better."""
    for method in ("platt", "isotonic"):
        fitted = fit(method, *zip(*pairs, strict=True))
        assert all(0 <= fitted.probability(score) <= 1 for score in (-1e9, 0.0, 7.5, 1e9))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "Expecting"),
        ("[]", "no mapping"),
        ("{}", "neither slope"),
        ('{"slope": -1, "offset": 0}', "slope from 0"),
        ('{"slope": NaN}', "are numbers"),
        ('{"scores": [1, 2], "probabilities": [0.5]}', "each of the scores"),
        ('{"scores": [2, 1], "probabilities": [0.1, 0.5]}', "ascend"),
        ('{"scores": [1, 2], "probabilities": [0.5, 1.5]}', "from 0 to 1"),
    ],
)
def test_a_file_that_holds_none_is_told(content: str, told: str, tmp_path: Path) -> None:
    """With its name, before any work."""
    file = tmp_path / "calibration.json"
    file.write_text(content)
    with pytest.raises(UserError, match=told):
        BestSentence(calibration=file).check_files("")
    with pytest.raises(UserError, match="absent"):
        read_calibration(tmp_path / "absent.json")


def test_a_probability_is_corrected_and_a_score_becomes_one(tmp_path: Path) -> None:
    """What has neither stays without."""
    halved = Calibration(0.5, 0.0)
    likely, scored, silent = calibrated(
        [Output("a", 9.0, probability=0.9), Output("b", 0.0), Output("c")], halved
    )
    assert likely.probability == pytest.approx(0.75)
    assert scored.probability == 0.5
    assert silent.probability is None
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps({"scores": [0.0, 1.0], "probabilities": [0.1, 0.5]}))
    [output] = BestSentence(calibration=file).read([Read(("A cat sat.",), "cat?")])
    assert output.probability == pytest.approx(0.5)


@pytest.mark.integration
def test_readers_of_the_package_say_how_likely_their_answers_are() -> None:
    """Choices, labels and spans; a summary is neither right nor wrong."""
    text = "Ann Dunning found the unread fax behind the boiler. She gave it to the Widow Frack."
    choices = ("yes", "no")
    asked = [
        Read((text,), "Who found the unread fax?"),
        Read((text,), "Who found the fax?", choices=("Ann Dunning", "the boiler")),
        Read((text,), "Ann Dunning found the fax."),
        Read((text,), "Who found the moon of Jupiter in 1610?"),
        Read((text,)),
    ]
    *found, summary = Embedded(unanswerable="?").read(asked)
    found += Polarity().read([Read((text,), choices=choices)])
    assert all(o.probability is not None and 0 < o.probability < 1 for o in found)
    assert summary.probability is None
