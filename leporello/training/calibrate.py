"""`train --calibrate`: fits the confidence of a pipeline's answers to their scores."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.jobs.directory import RunDirectory, safe_name
from leporello.jobs.files import JobFiles
from leporello.jobs.options import TrainOptions, takes
from leporello.jobs.results import answers_of, selectivity
from leporello.models.calibration import Calibration, fit, odds_of
from leporello.runs.run import run
from leporello.training.splits import one_job, only_training

_MIN_ANSWERS = 20  # with fewer answers, the fitted curve would follow single answers
_FULL_SCORE = 100.0


@dataclass(frozen=True)
class FittedCalibration:
    """Result of `calibrate`."""

    pipeline: str  # name of the calibrated pipeline
    task: str  # name of the task that it answered
    file: Path  # file of the calibration, for the reader's parameter `calibration`
    answers: int  # number of answers that the calibration was fitted to
    documents: int  # number of the documents of these answers
    before: float  # expected calibration error of the reader's confidences, 0 to 1
    # Expected calibration error with cross-validation: each half of the documents is scored by a
    # calibration that was fitted to the other half.
    after: float


@takes(TrainOptions)
def calibrate(options: TrainOptions) -> FittedCalibration:
    """Runs a pipeline on a task, and fits the confidence of its answers to their scores.

    The score is by the task's judging metric; a calibration that the config names is ignored.
    Raises UserError for a reader without calibration, or too few answers.
    """
    options, _ = only_training(options)
    _, point, chosen = one_job("train", options)
    name = safe_name(f"{point.name}+{chosen.name}+calibration")
    folder = (options.out or Path("models") / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # An identity, since fitting to calibrated confidences would correct them twice.
    identity = folder / "none.json"
    write_json(identity, asdict(Calibration()))
    finished = run(
        [options.pipeline] if options.pipeline else [],
        [options.task] if options.task else [],
        config=options.config,
        overrides=[*options.settings, f"reader.calibration={identity}"],
        split=options.split,
        limit=options.limit,
        out=folder / "run",
        update=options.update,
        cached=options.cached,
    )
    if finished.stopped:
        raise UserError(f"{finished.stopped}; run the same command again to resume")
    [result] = finished.results
    metrics = metrics_of(chosen.metrics_of(chosen.spec.build()))
    rows = JobFiles(RunDirectory(finished.directory), result.pipeline, result.task).statistics()
    answers = [(row.document, *pair) for row in rows for pair in answers_of([row], metrics)]
    if len(answers) < _MIN_ANSWERS:
        raise UserError(
            f"{result.pipeline} has {len(answers)} answers to {result.task} with a probability and"
            f" a score: a calibration needs at least {_MIN_ANSWERS}"
        )
    file = folder / "calibration.json"
    write_json(file, asdict(_fitted(answers)))
    return FittedCalibration(
        point.name,
        chosen.name,
        file,
        len(answers),
        len({document for document, _, _ in answers}),
        selectivity([(confidence, score) for _, confidence, score in answers])["ece"],
        _held_out_error(answers),
    )


_Answers = Sequence[tuple[str, float, float]]  # document, confidence, score


def _fitted(answers: _Answers) -> Calibration:
    odds = [odds_of(confidence) for _, confidence, _ in answers]
    return fit(odds, [score / _FULL_SCORE for _, _, score in answers])


def _held_out_error(answers: _Answers) -> float:
    """Returns the error if each half of the documents is calibrated by the other half."""
    # By documents, since answers on one document share its difficulty.
    numbers = {document: n for n, document in enumerate(sorted({row[0] for row in answers}))}
    halves = [[row for row in answers if numbers[row[0]] % 2 == half] for half in (0, 1)]
    # The error on the fitted answers themselves would be too low to mean anything.
    calibrated = [
        (calibration.probability(odds_of(confidence)), score)
        for scored, fitted in (halves, halves[::-1])
        if fitted
        for calibration in [_fitted(fitted)]
        for _, confidence, score in scored
    ]
    return selectivity(calibrated)["ece"] if calibrated else float("nan")
