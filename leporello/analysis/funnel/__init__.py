"""Where answers are lost: what became of each example's proof, from stage to stage.

It reads runs and their tasks' data, and divides documents again by the cache. Begin with `collect`,
which makes a trace an example (`example_trace`); `counts` adds them up.
"""

from leporello.analysis.funnel.collect import (
    FinishedExamples,
    answer_score,
    check_document,
    trace_examples,
)
from leporello.analysis.funnel.counts import Funnel, FunnelStage, count_losses, funnels
from leporello.analysis.funnel.example_trace import (
    ANSWERED,
    STAGES,
    ChunkCover,
    ExampleTrace,
    Gold,
    gold_of,
    trace_example,
)

__all__ = [
    "ANSWERED",
    "STAGES",
    "ChunkCover",
    "ExampleTrace",
    "FinishedExamples",
    "Funnel",
    "FunnelStage",
    "Gold",
    "answer_score",
    "check_document",
    "count_losses",
    "funnels",
    "gold_of",
    "trace_example",
    "trace_examples",
]
