"""`train --calibrate`: fitting probabilities to the scores of answers."""

from pathlib import Path

import pytest
from command_line import write_files

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
    """Returns a config whose task has half easy, half hard questions; some have wrong answers."""
    rows = [
        {
            "id": str(n),
            "document": f"The miller {n} slept. The red cat {n} sat on the mat.",
            "question": ["Where did the red cat sit?", "The cat?"][n % 2],
            "references": [f"The red cat {n} sat on the mat." if n % 8 else "Nowhere"],
        }
        for n in range(40)
    ]
    write_files(tmp_path, {"rows.jsonl": rows, "mine.yaml": CONFIG})
    return tmp_path / "mine.yaml"


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_probabilities_are_fitted_to_scores_and_used(config: Path, method: str) -> None:
    out = config.parent / "fitted"
    fitted = calibrate("mine", method=method, config=[config], out=out)  # type: ignore[arg-type]
    assert (fitted.answers, fitted.documents) == (40, 40)
    assert fitted.after < fitted.before
    overrides = [f"reader.calibration={fitted.file}"]
    calibrated = run(["mine"], config=[config], overrides=overrides, out=config.parent / "run")
    assert calibrated.results[0].confidence["ece"] < 0.05


@pytest.mark.parametrize(
    ("pipeline", "limit", "message"),
    [
        ("first", None, "Lead has no parameter 'calibration'"),
        ("mine", 5, "5 answers .* at least 20"),
    ],
)
def test_a_pipeline_that_cannot_be_calibrated_is_reported(
    config: Path, pipeline: str, limit: int | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        calibrate(pipeline, config=[config], limit=limit, out=config.parent / "fitted")
