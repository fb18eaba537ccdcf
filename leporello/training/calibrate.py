"""`train --calibrate`: how likely a pipeline's answers are right, fitted to what they scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.jobs.confidence import selectivity
from leporello.jobs.directory import RunDirectory, safe_name
from leporello.jobs.files import JobFiles
from leporello.jobs.options import CalibrateOptions, takes
from leporello.jobs.results import answers_of
from leporello.models.calibration import Calibration, Method, fit, odds_of
from leporello.runs.run import run
from leporello.training.splits import one_job

_FEWEST = 20  # answers
_FULL = 100.0


@dataclass(frozen=True)
class FittedCalibration:
    """A calibration that was fitted.

    Attributes:
        pipeline: Name of the pipeline whose answers it is of.
        task: Name of the task that they answer.
        file: File of the calibration, which the reader's parameter `calibration` takes.
        answers: Number of answers that it was fitted to.
        documents: Number of their documents.
        before: Expected calibration error of what the reader said, 0 to 1.
        after: The same error of what two calibrations say, each fitted to the other half of the
            documents.
    """

    pipeline: str
    task: str
    file: Path
    answers: int
    documents: int
    before: float
    after: float


@takes(CalibrateOptions)
def calibrate(options: CalibrateOptions) -> FittedCalibration:
    """Runs a pipeline on a task, and fits how likely its answers are right to their scores.

    The score is that of the task's first metric; a calibration that the config names is left out.

    Raises:
        UserError: A mistake of the user's, a reader that takes no calibration, or too few answers.
    """
    _, point, chosen = one_job("train", options)
    name = safe_name(f"{point.name}+{chosen.name}+calibration")
    folder = (options.out or Path("models") / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    as_it_is = folder / "none.json"
    write_json(as_it_is, Calibration().row())
    done = run(
        [options.pipeline] if options.pipeline else [],
        [options.task] if options.task else [],
        config=options.config,
        overrides=[*options.settings, f"reader.calibration={as_it_is}"],
        split=options.split,
        limit=options.limit,
        out=folder / "run",
        update=options.update,
        cached=options.cached,
    )
    if done.stopped:
        raise UserError(f"{done.stopped}; the same command goes on")
    [result] = done.results
    metrics = metrics_of(chosen.metrics_of(chosen.spec.build()))
    rows = JobFiles(RunDirectory(done.directory), result.pipeline, result.task).statistics()
    told = [(row.document, *pair) for row in rows for pair in answers_of([row], metrics)]
    if len(told) < _FEWEST:
        raise UserError(
            f"{result.pipeline} gives {len(told)} answers to {result.task} with a probability and a"
            f" score: {_FEWEST} at least are needed"
        )
    file = folder / "calibration.json"
    write_json(file, _fitted(options.method, told).row())
    return FittedCalibration(
        point.name,
        chosen.name,
        file,
        len(told),
        len({document for document, _, _ in told}),
        selectivity([(confidence, score) for _, confidence, score in told])["ece"],
        _error_apart(options.method, told),
    )


_Told = Sequence[tuple[str, float, float]]  # document, confidence, score


def _fitted(method: Method, told: _Told) -> Calibration:
    odds = [odds_of(confidence) for _, confidence, _ in told]
    return fit(method, odds, [score / _FULL for _, _, score in told])


def _error_apart(method: Method, told: _Told) -> float:
    """Returns the error where each half of the documents is told by what the other half fitted."""
    places = {document: n for n, document in enumerate(sorted({each[0] for each in told}))}
    halves = [[each for each in told if places[each[0]] % 2 == half] for half in (0, 1)]
    answers = [
        (calibration.probability(odds_of(confidence)), score)
        for own, other in (halves, halves[::-1])
        if other
        for calibration in [_fitted(method, other)]
        for _, confidence, score in own
    ]
    return selectivity(answers)["ece"] if answers else float("nan")
