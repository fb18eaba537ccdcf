"""Metrics: the benchmarks' own arithmetic, 0 to 100, each with a signature that says what it is.

One file a metric; `METRICS` below names them. A metric is a pure function of a prediction and its
example, but for the two of coco-caption that ask a Java program. Begin with `protocol`, then
`exact_match`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from leporello.core.environment.classes import find_class
from leporello.core.errors import UserError
from leporello.core.protocols import METRIC, MetricEntry
from leporello.metrics.coco.bleu_rouge import BleuCoco, RougeLCoco
from leporello.metrics.coco.meteor import MeteorCoco
from leporello.metrics.concordance_index import ConcordanceIndex
from leporello.metrics.exact_match import ExactMatch
from leporello.metrics.exponential_similarity import ExponentialSimilarity
from leporello.metrics.f1 import F1, F1Unidecode
from leporello.metrics.f1_macro import F1Macro, NoAnswer
from leporello.metrics.judging.citations import Citations
from leporello.metrics.judging.judge import Judge
from leporello.metrics.long_context.infinite_bench import InfiniteBenchScore
from leporello.metrics.long_context.longbench import LongBenchScore, LongBenchV2Accuracy
from leporello.metrics.long_context.loogle import LooGLECloze, LooGLESimilarity
from leporello.metrics.option_letter import OptionLetter
from leporello.metrics.pan21 import StyleChangeF1
from leporello.metrics.protocol import GoldError, Metric, Parses, Resampled, Statistics
from leporello.metrics.recall import Recall, RecallRead
from leporello.metrics.rouge import Rouge, RougeScrolls, RougeScrollsInstance
from leporello.metrics.shuffle_accuracy import ShuffleAccuracy
from leporello.metrics.string_match import BabilongAccuracy, StringMatchAll, StringMatchPart
from leporello.metrics.typed.match import TypedMatch

__all__ = [
    "METRICS",
    "GoldError",
    "Metric",
    "Parses",
    "Resampled",
    "Statistics",
    "check_metrics",
]

METRICS: Mapping[str, type[Metric]] = {
    "babilong_accuracy": BabilongAccuracy,
    "bleu_coco": BleuCoco,
    "citations": Citations,
    "concordance_index": ConcordanceIndex,
    "exact_match": ExactMatch,
    "exponential_similarity": ExponentialSimilarity,
    "f1": F1,
    "f1_macro": F1Macro,
    "f1_unidecode": F1Unidecode,
    "infinite_bench": InfiniteBenchScore,
    "judge": Judge,
    "longbench": LongBenchScore,
    "longbench_v2": LongBenchV2Accuracy,
    "loogle": LooGLESimilarity,
    "loogle_cloze": LooGLECloze,
    "meteor_coco": MeteorCoco,
    "no_answer": NoAnswer,
    "option_letter": OptionLetter,
    "pan21": StyleChangeF1,
    "recall": Recall,
    "recall_read": RecallRead,
    "rouge": Rouge,
    "rouge_l_coco": RougeLCoco,
    "rouge_scrolls": RougeScrolls,
    "rouge_scrolls_instance": RougeScrollsInstance,
    "shuffle_accuracy": ShuffleAccuracy,
    "string_match_all": StringMatchAll,
    "string_match_part": StringMatchPart,
    "typed_match": TypedMatch,
}


def check_metrics(entries: Iterable[MetricEntry]) -> None:
    """Checks the parameter `metrics` of a task; what a metric's parameters may be is not looked at.

    Raises:
        UserError: There is no metric of such a name.
    """
    for entry in entries:
        name = entry if isinstance(entry, str) else entry.get("class")
        if not isinstance(name, str):
            raise UserError(f"a metric is a name, or a mapping with `class`, got {entry!r:.80}")
        find_class(name, METRIC, Path())
