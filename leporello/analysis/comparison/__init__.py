"""Pipelines side by side, and whether they differ by more than chance.

It reads runs' statistics alone: neither data nor models. Begin with `comparison`, whose `scores`
resamples by `significance`; `tables` lays the result out.
"""

from __future__ import annotations

from leporello.analysis.comparison.comparison import compare
from leporello.analysis.comparison.outcomes import OracleGap
from leporello.analysis.comparison.scores import Difference, Draws, Score
from leporello.analysis.comparison.tables import (
    Comparison,
    PipelineScores,
    TaskComparison,
    csv_of,
    tables_of,
)
from leporello.core.table import ResultTable, latex, markdown

__all__ = [
    "Comparison",
    "Difference",
    "Draws",
    "OracleGap",
    "PipelineScores",
    "ResultTable",
    "Score",
    "TaskComparison",
    "compare",
    "csv_of",
    "latex",
    "markdown",
    "tables_of",
]
