"""Tests of plots of scores over lengths, and of RULER's effective length."""

from pathlib import Path

import pytest

from leporello.analysis.comparison.scores import Score
from leporello.analysis.comparison.tables import PipelineScores, TaskComparison
from leporello.report.curves import effective_length, effective_lengths, length_plots


def board(task: str, value: float) -> TaskComparison:
    """Returns a comparison with one pipeline on one task."""
    score = Score(value, {}, (value - 1, value), None, 9)
    entry = PipelineScores(
        "best-sentence", Path(), "best-sentence", "BestSentence", {"string_match_all": score},
        9, 0, {}, None, 0, 0, None, False, False, {},
    )  # fmt: skip
    return TaskComparison(
        task, "best-sentence", {"string_match_all": "string_match_all"}, (entry,), (), ()
    )


def test_several_lengths_of_a_task_are_plotted() -> None:
    boards = [
        board("ruler/vt@length=1024", 80.0),
        board("ruler/niah_single_1@length=1024", 100.0),
        board("ruler/niah_single_1@length=512,seed=1", 100.0),
        board("ruler/niah_single_1@length=512", 100.0),
        board("ruler/vt@length=512", 60.0),
        board("sample", 50.0),
    ]
    subset = [*boards[:2], *boards[3:]]
    names = {"best-sentence": "best-sentence"}
    plots = [*length_plots(subset, names)]
    assert [plot.title.partition(":")[0] for plot in plots] == [
        "mean of RULER's tasks against length",
        "string_match_all against length, ruler/vt",
        "string_match_all against length, ruler/niah_single_1",
    ]
    assert [row[1:3] for row in plots[0].rows] == [("512", "80.00"), ("1024", "90.00")]
    assert "best-sentence: 1,024 tokens (2 of 13 tasks)" in effective_lengths(subset)
    assert "none of the lengths" in effective_lengths([*subset[:1], *subset[3:4]])
    assert "best-sentence, seed=1: 512 tokens (1 of 13 tasks)" in effective_lengths(boards)
    assert not [*length_plots(boards[-1:], names)]
    assert not effective_lengths(boards[-1:])


@pytest.mark.parametrize(
    ("averages", "length"),
    [
        ((96.6, 96.3, 95.2, 93.2, 87.0, 81.2), 64),  # GPT-4-1106-preview
        ((92.8, 90.3, 85.7, 79.9, 76.3, 69.5), 16),  # GradientAI/Llama3 (8B)
        ((88.1, 85.5, 84.5, 82.7, 75.5, 68.9), 4),  # InternLM2.5
        ((96.7, 95.8, 96.0, 95.9, 95.9, 94.4), 128),  # Gemini-1.5-pro: ">128K"
        ((82.3, 78.4, 73.7, 69.1, 68.1, 65.0), None),  # LWM: "<4K"
    ],
)
def test_effective_length_equals_the_benchmarks_table(
    averages: tuple[float, ...], length: int | None
) -> None:
    """The rows are from the benchmark's README, with averages at 4K to 128K."""
    by_length = dict(zip((4, 8, 16, 32, 64, 128), averages, strict=True))
    assert effective_length(by_length) == length
