"""Comparing: pipelines side by side, and whether they differ by more than chance."""

from __future__ import annotations

from leporello.comparing.comparison import Board, Comparison, Entry, compare
from leporello.comparing.headroom import Ladder
from leporello.comparing.scores import Difference, Draws, Score
from leporello.comparing.sheets import Sheet, csv_of, latex, markdown, sheets

__all__ = [
    "Board",
    "Comparison",
    "Difference",
    "Draws",
    "Entry",
    "Ladder",
    "Score",
    "Sheet",
    "compare",
    "csv_of",
    "latex",
    "markdown",
    "sheets",
]
