"""Exports answers to a style change task as PAN's solution files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from leporello.analysis.export.submission import few
from leporello.analysis.finished import FinishedExamples, FinishedJob, FinishedRun, check_document
from leporello.core.errors import UserError
from leporello.core.files import check_own, write_json
from leporello.core.records import JSON, Example
from leporello.metrics.pan21 import StyleChangeF1, labels_of

_PROBLEM = re.compile(r"problem-(\d+)")
_LISTS = ("changes", "paragraph-authors")


def write_pan(run: Path, folder: Path) -> list[Path]:
    """Writes PIPELINE/TASK/solution-problem-N.json, as PAN 2021's evaluator and verifier read it.

    N is the number of PAN's problem; in tasks without problems (MuLD), the place of the example in
    the task, from 1.

    Args:
        run: Directory of the run.
        folder: Folder of the files.

    Raises:
        UserError: The directory has no run of a style change task; or an example is not finished,
            failed, or has an answer without an author for each paragraph.
    """
    finished = FinishedRun.at(run)
    jobs = [
        job
        for job in finished.jobs
        if any(isinstance(metric, StyleChangeF1) for metric in job.metrics.values())
    ]
    if not jobs:
        raise UserError(f"{run}: has no results of a style change task, with the metric pan21")
    paths = []
    for job in jobs:
        place = folder / job.files.folder.relative_to(finished.directory.path)
        solutions = dict(_solutions(job))
        if unfit := [example_id for example_id, solution in solutions.values() if not solution]:
            raise UserError(
                f"{run}: {job.name}: {len(unfit)} of {len(solutions)} answers are missing, or do"
                f" not have an author for each paragraph ({few(unfit)})"
            )
        place.mkdir(parents=True, exist_ok=True)
        for number, (_, solution) in solutions.items():
            path = place / f"solution-problem-{number}.json"
            check_own(path, "paragraph-authors")
            write_json(path, solution)
            paths.append(path)
    return paths


def _solutions(job: FinishedJob) -> Iterator[tuple[int, tuple[str, dict[str, JSON]]]]:
    """Yields the number of each problem, its id, and its solution; empty if it is not valid."""
    rows = FinishedExamples(job.files)
    for place, example in enumerate(job.examples(), 1):
        problem = _PROBLEM.fullmatch(example.id)
        if row := rows.take(example.id):
            check_document(job.name, example, row)
        text = row.prediction["prediction"] if row and row.prediction else ""
        yield int(problem[1]) if problem else place, (example.id, _solution(text, example))
    rows.check_end(job.name)


def _solution(text: str, example: Example) -> dict[str, JSON]:
    labels = labels_of(text)
    count = len(example.document.parts)
    if [len(labels[key]) for key in _LISTS] != [count - 1, count] or not labels["multi-author"]:
        return {}
    return {
        "multi-author": int(labels["multi-author"][0]),
        **{key: [int(label) for label in labels[key]] for key in _LISTS},
    }
