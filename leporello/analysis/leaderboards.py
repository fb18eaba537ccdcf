"""The benchmarks that have a leaderboard: suites whose `submission` says what it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from leporello.config.suites import Suite, SuiteSubmission, read_suites
from leporello.core.errors import UserError, did_you_mean
from leporello.jobs.results import Result


def leaderboard_named(name: str) -> tuple[Suite, SuiteSubmission]:
    """Returns a suite, and what its leaderboard takes.

    Raises:
        UserError: There is none of this name that takes submissions.
    """
    suites = _built_in()
    found = suites.get(name)
    if found is None or found.submission is None:
        known = [suite.name for suite in suites.values() if suite.submission]
        raise UserError(f"there are no submissions to {name!r}{did_you_mean(name, known)}")
    return found, found.submission


@cache
def _built_in() -> Mapping[str, Suite]:
    return read_suites()


def average_of(results: Sequence[Result], suite: Suite) -> tuple[float | None, tuple[str, ...]]:
    """Returns a suite's average, and the tasks that are missing from it.

    The mean of the columns' scores, 0 to 100, if every column has one, else None; what is no
    column's task, as `quality_hard`, never counts.

    Args:
        results: Results of one pipeline; those on other tasks are passed over.
        suite: The suite.

    Raises:
        UserError: There are two results on one task.
    """
    scores: dict[str, float] = {}
    wanted = {column.task: column.score for column in suite.columns.values()}
    for result in results:
        score = wanted.get(result.task, "")
        if score in result.scores:
            if result.task in scores:
                raise UserError(
                    f"an average needs one result a task; there are two on {result.task!r}"
                )
            scores[result.task] = result.scores[score]
    if missing := tuple(task for task in wanted if task not in scores):
        return None, missing
    return sum(scores.values()) / len(wanted), ()
