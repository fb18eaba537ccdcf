"""Submissions to the leaderboards: one CSV, byte for byte what the authors' scripts write.

Nothing is repaired: what the script, or the leaderboard behind it, would trip over is refused.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.analysis.finished import FinishedJob, FinishedRun
from leporello.config.suites import Suite, SuiteSubmission, read_suites
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import read_rows
from leporello.jobs.checksums import check_results
from leporello.jobs.directory import runs_in

_COLUMNS = ("Task", "ID", "Prediction")
_NOT_AVAILABLE = "!@#$%^&*()"  # the scripts read this text as a missing value
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Submission:
    """What was written.

    Attributes:
        file: The CSV.
        rows: Number of predictions, by task.
        failed: Ids of examples that failed, by task; their predictions are empty.
        splits: Name of the split, by task; leaderboards take `test`.
    """

    file: Path
    rows: Mapping[str, int]
    failed: Mapping[str, tuple[str, ...]]
    splits: Mapping[str, str]


def submit(runs: Sequence[Path], benchmark: str, out: Path, *, pipeline: str = "") -> Submission:
    """Writes the predictions of runs as a submission.

    Args:
        runs: Directories of runs, or folders in which such lie; between them each of the
            benchmark's tasks stands once.
        benchmark: Name of the benchmark.
        out: The file, or a directory, in which it gets the name that the authors' script gives.
        pipeline: Name of the only pipeline that counts, or of a row of the suite; needed where a
            task was run with several.

    Raises:
        UserError: What `submission_csv` refuses; a task that was run twice, or whose predictions
            are not written yet; no run where one is said to be; data that cannot be read.
    """
    suite, board = leaderboard_named(benchmark)
    row = suite.pipelines(pipeline) if pipeline in suite.rows else {}
    jobs = _jobs(runs, benchmark, {task: row.get(task, pipeline) for task in board.tasks})
    if faults := [*_differing("tasks", board.tasks, jobs)]:
        among = f" of pipeline {pipeline!r}" if pipeline else ""
        raise UserError(f"no submission to {benchmark}: {'; '.join(faults)} in these runs{among}")
    finished = {task: _predictions(job) for task, job in jobs.items()}
    ids = {task: [example.id for example in job.examples()] for task, job in jobs.items()}
    text = submission_csv(
        {task: _in_order(predictions, ids[task]) for task, (predictions, _) in finished.items()},
        benchmark,
        ids,
    )
    file = out / board.file if out.is_dir() else out
    _write(file, text)
    return Submission(
        file=file,
        rows={task: len(predictions) for task, (predictions, _) in finished.items()},
        failed={task: failed for task, (_, failed) in finished.items() if failed},
        splits={task: str(j.signature["task"].get("split", "")) for task, j in jobs.items()},
    )


def leaderboard_named(name: str) -> tuple[Suite, SuiteSubmission]:
    """Returns a suite, and what its leaderboard takes.

    Raises:
        UserError: There is none of this name that takes submissions.
    """
    suites = read_suites()
    found = suites.get(name)
    if found is None or found.submission is None:
        known = [suite.name for suite in suites.values() if suite.submission]
        raise UserError(f"there are no submissions to {name!r}{did_you_mean(name, known)}")
    return found, found.submission


def submission_csv(
    predictions: Mapping[str, Mapping[str, str]], benchmark: str, ids: Mapping[str, Collection[str]]
) -> bytes:
    """Returns the CSV that the benchmark's own script writes.

    Args:
        predictions: Predictions by task, without the benchmark's name, and by example, in the order
            in which they are written.
        benchmark: Name of the benchmark.
        ids: Ids that must be there, by task.

    Raises:
        UserError: What the script or the leaderboard would refuse, all of it: ids that are missing
            or redundant, texts that do not survive the CSV.
    """
    tasks = leaderboard_named(benchmark)[1].tasks
    faults = [f"{t}: {fault}" for t in tasks for fault in _task_faults(predictions[t], ids[t])]
    if faults:
        raise UserError(f"no submission to {benchmark}:\n" + "\n".join(faults))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows((t, i, p) for t in tasks for i, p in predictions[t].items())
    return text.getvalue().encode()


def _task_faults(predictions: Mapping[str, str], ids: Collection[str]) -> Iterator[str]:
    """Yields what is wrong with the predictions of a task."""
    yield from _differing("ids", ids, predictions)
    spoilt: dict[str, list[str]] = {}
    for id_, text in predictions.items():
        if why := _spoilt(id_) or _spoilt(text):
            spoilt.setdefault(why, []).append(id_)
    yield from (f"{why}, in {len(where)} ({few(where)})" for why, where in spoilt.items())


def _spoilt(text: str) -> str:
    r"""Returns why a text would not come out of the CSV as it went in, or nothing.

    These are the cases in which the scripts' own check fails; a `\r` is sound in quotes.
    """
    if text == _NOT_AVAILABLE:
        return f"the text {_NOT_AVAILABLE} stands for a missing value there"
    if "\0" in text:
        return "a NUL character ends a text there"
    if "\r" in text and not any(mark in text for mark in ',"\n'):
        return "a carriage return (\\r) begins a new row there"
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return "half a character (a lone surrogate) cannot be written in UTF-8"
    return ""


def _differing(what: str, wanted: Collection[str], given: Collection[str]) -> Iterator[str]:
    wanted_set, given_set = set(wanted), set(given)
    missing = [name for name in wanted if name not in given_set]
    redundant = [str(name) for name in given if name not in wanted_set]
    if missing:
        yield f"{len(missing)} {what} are missing ({few(missing)})"
    if redundant:
        yield f"{len(redundant)} {what} are redundant ({few(redundant)})"


def few(names: Sequence[str]) -> str:
    """Returns the first of many names, for a message."""
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def _predictions(job: FinishedJob) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns the predictions by id, and the ids of what failed: these are empty."""
    folder = job.files.folder
    files = folder / "predictions.jsonl", folder / "failures.jsonl"
    if not all(file.exists() for file in files):
        place = job.run.directory.path
        raise UserError(f"{place}: {job.name} is not finished; run it to its end first")
    check_results(folder, *(file.name for file in files))
    predictions = {row["id"]: row["prediction"] for row in read_rows(files[0])}
    failed = tuple(row["id"] for row in read_rows(files[1]))
    return predictions | dict.fromkeys(failed, ""), failed


def _jobs(
    runs: Sequence[Path], benchmark: str, pipelines: Mapping[str, str]
) -> dict[str, FinishedJob]:
    """Returns what was run on the benchmark's tasks, with the pipelines that count for them."""
    jobs: dict[str, FinishedJob] = {}
    paths = dict.fromkeys(path.resolve() for run in runs for path in runs_in(run))
    for job in (job for run in map(FinishedRun.at, paths) for job in run.jobs):
        prefix, _, short = job.task.rpartition("/")
        if prefix == benchmark and pipelines.get(short) in ("", job.pipeline):
            if other := jobs.get(short):
                raise UserError(_twice(job, other))
            jobs[short] = job
    return jobs


def _twice(job: FinishedJob, other: FinishedJob) -> str:
    both = ", ".join(f"{one.pipeline} in {one.run.directory.path}" for one in (other, job))
    hint = "" if job.pipeline == other.pipeline else "; name one, or a row, with --pipeline"
    return f"{job.task} was run twice: {both}{hint}"


def _in_order(predictions: Mapping[str, str], ids: Sequence[str]) -> dict[str, str]:
    """Returns the predictions in the order of the task; what is not the task's comes last."""
    ordered = {id_: predictions[id_] for id_ in ids if id_ in predictions}
    return ordered | dict(predictions)


def _write(file: Path, content: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None
