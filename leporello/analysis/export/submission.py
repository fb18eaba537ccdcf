"""Writes submissions to leaderboards: a CSV file, byte for byte as the authors' scripts write it.

Nothing is repaired: predictions that the script or the leaderboard cannot process are an error.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.analysis.finished import FinishedJob, finished_runs
from leporello.config import load_config
from leporello.config.suites import Suite, SuiteSubmission
from leporello.core.errors import UserError, did_you_mean, few
from leporello.core.files import check_own, read_rows
from leporello.core.table import csv_text

_COLUMNS = ("Task", "ID", "Prediction")
_NOT_AVAILABLE = "!@#$%^&*()"  # the scripts read this text as a missing value


@dataclass(frozen=True, slots=True)
class Submission:
    """Result of `submit`."""

    file: Path  # path of the CSV file
    rows: Mapping[str, int]  # number of predictions, by task
    failed: Mapping[str, tuple[str, ...]]  # ids of failures by task; their predictions are empty
    splits: Mapping[str, str]  # name of the split, by task; leaderboards take `test`


def submit(runs: Sequence[Path], benchmark: str, out: Path, *, pipeline: str = "") -> Submission:
    """Writes the predictions of runs as a submission.

    Args:
        runs: Directories of runs, or folders of them; together they must contain each of the
            benchmark's tasks once.
        benchmark: Name of the benchmark.
        out: The file, or a directory, in which the file gets the name from the authors' script.
        pipeline: Name of the pipeline to use, or of a row of the suite; required if a task was
            run with several pipelines.
    """
    suite, board = leaderboard_named(benchmark)
    row = suite.pipelines(pipeline) if pipeline in suite.rows else {}
    file = out / board.file if out.is_dir() else out
    check_own(file, ",".join(_COLUMNS))
    jobs = _jobs(runs, benchmark, {task: row.get(task, pipeline) for task in board.tasks})
    if faults := [*_differing("tasks", board.tasks, jobs)]:
        suffix = f" of pipeline {pipeline!r}" if pipeline else ""
        raise UserError(f"no submission to {benchmark}: {'; '.join(faults)} in these runs{suffix}")
    finished = {task: _predictions(job) for task, job in jobs.items()}
    ids = {task: [example.id for example in job.examples()] for task, job in jobs.items()}
    # In the order of the task; unknown ids come last.
    ordered = {
        task: {id_: predictions[id_] for id_ in ids[task] if id_ in predictions} | predictions
        for task, (predictions, _) in finished.items()
    }
    text = submission_csv(ordered, benchmark, ids)
    _write(file, text)
    return Submission(
        file=file,
        rows={task: len(predictions) for task, (predictions, _) in finished.items()},
        failed={task: failed for task, (_, failed) in finished.items() if failed},
        splits={task: job.split for task, job in jobs.items()},
    )


def leaderboard_named(name: str) -> tuple[Suite, SuiteSubmission]:
    """Returns a suite and the format of its submissions; raises UserError if it has none."""
    suites = load_config().suites
    suite = suites.get(name)
    if suite is None or suite.submission is None:
        names = [candidate.name for candidate in suites.values() if candidate.submission]
        raise UserError(f"{name!r} does not accept submissions{did_you_mean(name, names)}")
    return suite, suite.submission


def submission_csv(
    predictions: Mapping[str, Mapping[str, str]], benchmark: str, ids: Mapping[str, Collection[str]]
) -> bytes:
    """Returns the CSV that the benchmark's script writes of predictions by task and example.

    `ids` are those required, by task. Raises UserError with all faults: missing or redundant ids,
    and texts that the CSV cannot represent.
    """
    tasks = leaderboard_named(benchmark)[1].tasks
    faults = [f"{t}: {fault}" for t in tasks for fault in _task_faults(predictions[t], ids[t])]
    if faults:
        raise UserError(f"no submission to {benchmark}:\n" + "\n".join(faults))
    rows = ((t, i, p) for t in tasks for i, p in predictions[t].items())
    return csv_text([_COLUMNS, *rows], raw=True).encode()  # byte for byte as the benchmark's script


def _task_faults(predictions: Mapping[str, str], ids: Collection[str]) -> Iterator[str]:
    yield from _differing("ids", ids, predictions)
    by_reason: dict[str, list[str]] = {}
    for id_, text in predictions.items():
        if reason := _fault(id_) or _fault(text):
            by_reason.setdefault(reason, []).append(id_)
    yield from (f"{reason}, in {len(ids)} ({few(ids)})" for reason, ids in by_reason.items())


def _fault(text: str) -> str:
    """Returns the reason why reading the CSV would not restore a text, or nothing."""
    if text == _NOT_AVAILABLE:
        return f"the scripts read the text {_NOT_AVAILABLE} as a missing value"
    if "\0" in text:
        return "the scripts end a text at a NUL character"
    if "\r" in text and not any(mark in text for mark in ',"\n'):
        return "the scripts begin a new row at a carriage return (\\r)"
    return ""


def _differing(kind: str, required: Collection[str], present: Collection[str]) -> Iterator[str]:
    required_set, present_set = set(required), set(present)
    missing = [name for name in required if name not in present_set]
    redundant = [str(name) for name in present if name not in required_set]
    if missing:
        yield f"{len(missing)} {kind} are missing ({few(missing)})"
    if redundant:
        yield f"{len(redundant)} {kind} are redundant ({few(redundant)})"


def _predictions(job: FinishedJob) -> tuple[dict[str, str], tuple[str, ...]]:
    folder = job.files.folder
    files = folder / "predictions.jsonl", folder / "failures.jsonl"
    if not all(file.exists() for file in files):
        place = job.run.directory.path
        raise UserError(f"{place}: {job.name} is not finished; complete the run first")
    job.files.check(*(file.name for file in files))
    predictions = {row["id"]: row["prediction"] for row in read_rows(files[0])}
    failed = tuple(row["id"] for row in read_rows(files[1]))
    return predictions | dict.fromkeys(failed, ""), failed


def _jobs(
    runs: Sequence[Path], benchmark: str, pipelines: Mapping[str, str]
) -> dict[str, FinishedJob]:
    jobs: dict[str, FinishedJob] = {}
    for job in (job for run in finished_runs(runs) for job in run.jobs):
        prefix, _, short = job.task.partition("@")[0].rpartition("/")
        if prefix == benchmark and pipelines.get(short) in ("", job.pipeline):
            if first := jobs.get(short):
                raise UserError(_run_twice(first, job))
            jobs[short] = job
    return jobs


def _run_twice(first: FinishedJob, second: FinishedJob) -> str:
    runs = ", ".join(f"{job.pipeline} in {job.run.directory.path}" for job in (first, second))
    is_same = first.pipeline == second.pipeline
    hint = "" if is_same else "; choose a pipeline or a row with --pipeline"
    return f"{first.task} was run twice: {runs}{hint}"


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None
