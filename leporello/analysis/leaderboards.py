"""The benchmarks that have a leaderboard: their tasks, and the scores that enter the average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leporello.core.errors import UserError, did_you_mean
from leporello.jobs.results import Result


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """A benchmark with a leaderboard.

    Attributes:
        name: Name of the benchmark; its tasks are called `NAME/TASK`.
        file: Name that its script gives the CSV.
        scores: Score that enters the average, by task, in the CSV's order.
    """

    name: str
    file: str
    scores: Mapping[str, str]


LEADERBOARDS: Mapping[str, Leaderboard] = {
    "scrolls": Leaderboard(
        "scrolls",
        "scrolls_predictions.csv",
        {
            "qmsum": "rouge_scrolls",
            "qasper": "f1",
            "summ_screen_fd": "rouge_scrolls",
            "quality": "exact_match",
            "narrative_qa": "f1",
            "contract_nli": "exact_match",
            "gov_report": "rouge_scrolls",
        },
    ),
    "zero_scrolls": Leaderboard(
        "zero_scrolls",
        "zero_scrolls_predictions.csv",
        {
            "gov_report": "rouge_scrolls",
            "summ_screen_fd": "rouge_scrolls",
            "qmsum": "rouge_scrolls",
            "squality": "rouge_scrolls",
            "qasper": "f1_unidecode",
            "narrative_qa": "f1_unidecode",
            "quality": "option_letter",
            "musique": "f1_unidecode",
            "space_digest": "exponential_similarity",
            "book_sum_sort": "concordance_index",
        },
    ),
}


# Tasks on some examples of another one: predictions for all of them are scored on these.
SUBSETS: Mapping[str, str] = {"quality_hard": "quality"}


def leaderboard_named(name: str) -> Leaderboard:
    """Returns a benchmark.

    Raises:
        UserError: There is none of this name that takes submissions.
    """
    if name not in LEADERBOARDS:
        raise UserError(f"there are no submissions to {name!r}{did_you_mean(name, LEADERBOARDS)}")
    return LEADERBOARDS[name]


def leaderboard_average(
    results: Sequence[Result], benchmark: str
) -> tuple[float | None, tuple[str, ...]]:
    """Returns the benchmark's average, and the tasks that are missing from it.

    The mean of the tasks' scores, 0 to 100, if every task has one, else None; `quality_hard` never
    counts.

    Args:
        results: Results of one pipeline; those on other tasks are passed over.
        benchmark: Name of the benchmark.

    Raises:
        UserError: There is no such benchmark, or two results on one task.
    """
    board = leaderboard_named(benchmark)
    scores_by_task: dict[str, float] = {}
    for result in results:
        prefix, _, task = result.task.rpartition("/")
        score = board.scores.get(task) if prefix == board.name else None
        if score is None or score not in result.scores:
            continue
        if task in scores_by_task:
            raise UserError(f"an average needs one result a task; there are two on {result.task!r}")
        scores_by_task[task] = result.scores[score]
    if missing := tuple(
        f"{board.name}/{task}" for task in board.scores if task not in scores_by_task
    ):
        return None, missing
    return sum(scores_by_task[task] for task in board.scores) / len(board.scores), ()
