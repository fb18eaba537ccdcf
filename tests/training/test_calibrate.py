"""`train --calibrate`: probabilities fitted to what answers scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leporello.api import UserError, run
from leporello.training import calibrate

CONFIG = """
tasks:
  rows: {class: JsonLines, path: rows.jsonl, metrics: [exact_match]}
pipelines:
  mine: {reader: {class: BestSentence}, tasks: [rows], placement: {workers: 0}}
  first: {extends: mine, reader: {class: Lead, words: 3}}
"""


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> Path:
    """Questions with more of the answer's words are right more often, one in four never."""
    rows = [
        {
            "id": str(n),
            "document": f"The miller {n} slept. The red cat {n} sat on the mat.",
            "question": ["Where did the red cat sit?", "The cat?"][n % 2],
            "references": [f"The red cat {n} sat on the mat." if n % 8 else "Nowhere"],
        }
        for n in range(40)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.yaml").write_text(CONFIG)
    return tmp_path / "mine.yaml"


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_probabilities_are_fitted_to_scores_and_used(config: Path, method: str) -> None:
    """On documents that were not fitted to they are off by less than what was said before."""
    out = config.parent / "fitted"
    done = calibrate("mine", method=method, config=[config], out=out)  # type: ignore[arg-type]
    assert (done.answers, done.documents) == (40, 40)
    assert done.after < done.before
    overrides = [f"reader.calibration={done.file}"]
    again = run(["mine"], config=[config], overrides=overrides, out=config.parent / "run")
    assert again.results[0].confidence["ece"] < 0.05


@pytest.mark.parametrize(
    ("pipeline", "limit", "told"),
    [
        ("first", None, "Lead has no parameter 'calibration'"),
        ("mine", 5, "5 answers .* 20 at least"),
    ],
)
def test_what_cannot_be_calibrated_is_told(
    config: Path, pipeline: str, limit: int | None, told: str
) -> None:
    """A reader that takes no calibration, and answers too few."""
    with pytest.raises(UserError, match=told):
        calibrate(pipeline, config=[config], limit=limit, out=config.parent / "fitted")
