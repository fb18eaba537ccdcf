"""The verbs as typed functions: what the command line does, from Python.

Nothing heavy is imported until a model is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leporello.analysis.comparison import Comparison, compare
from leporello.analysis.explain import Explanation, explain
from leporello.analysis.funnel import ExampleTrace, Funnel, funnels, trace_examples
from leporello.analysis.score import score
from leporello.config import Config, PipelineSpec, TaskSpec
from leporello.config import load_config as load_pipelines
from leporello.core.environment.old_names import renamed
from leporello.core.errors import ConfigError, Fault, UserError
from leporello.engine.progress import ProgressDisplay, show_progress_with
from leporello.jobs.results import Result
from leporello.report import Report, report
from leporello.runs.ask import Answer, AskSettings, Passage, Session, ask
from leporello.runs.run import Run, run
from leporello.training import FewShotExamples, Trained, few_shot_examples, train

__all__ = [
    "Answer",
    "AskSettings",
    "Comparison",
    "Config",
    "ConfigError",
    "ExampleTrace",
    "Explanation",
    "Fault",
    "FewShotExamples",
    "Funnel",
    "Passage",
    "PipelineSpec",
    "Report",
    "Result",
    "Run",
    "Session",
    "TaskSpec",
    "Trained",
    "UserError",
    "ask",
    "compare",
    "explain",
    "few_shot_examples",
    "funnels",
    "load_pipelines",
    "report",
    "run",
    "score",
    "trace_examples",
    "train",
]


def _progress_bar(title: str, examples: int | None) -> ProgressDisplay | None:
    from leporello.cli.display.progress import progress_bar

    return progress_bar(title, examples)


show_progress_with(_progress_bar)  # on a terminal or not, as from the command line

if not TYPE_CHECKING:  # a type checker knows the new names only
    __getattr__ = renamed(
        __name__,
        {
            "Fate": "ExampleTrace",
            "Worked": "FewShotExamples",
            "fates": "trace_examples",
            "worked_examples": "few_shot_examples",
        },
    )
