"""Metrics of the benchmarks, 0 to 100, with signatures that describe the computation.

A metric is a pure function of a prediction and its example, except that coco-caption's metrics run
a Java program. Start with `protocol`, then read `squad`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from leporello.core.environment.classes import find_class, lazy_classes
from leporello.core.errors import UserError
from leporello.core.protocols import METRIC, MetricEntry
from leporello.metrics.protocol import GoldError, Metric, Resampled, Statistics

__all__ = [
    "METRICS",
    "GoldError",
    "Metric",
    "Resampled",
    "Statistics",
    "check_metrics",
    "judging_metric",
]

_MODULES = {
    "babilong_accuracy": "long_context.needles:BabilongAccuracy",
    "bleu_coco": "coco.scores:BleuCoco",
    "citations": "citations:Citations",
    "concordance_index": "zero_scrolls:ConcordanceIndex",
    "exact_match": "squad:ExactMatch",
    "exponential_similarity": "zero_scrolls:ExponentialSimilarity",
    "f1": "squad:F1",
    "f1_macro": "f1_macro:F1Macro",
    "f1_unidecode": "squad:F1Unidecode",
    "graphwalks": "long_context.needles:GraphWalksF1",
    "helmet_ndcg": "long_context.needles:HelmetNdcg",
    "helmet_substring": "long_context.needles:HelmetSubstring",
    "infinite_bench": "long_context.infinite_bench:InfiniteBenchScore",
    "judge": "judge:Judge",
    "longbench": "long_context.longbench:LongBenchScore",
    "longbench_v2": "long_context.longbench:LongBenchV2Accuracy",
    "loogle": "long_context.loogle:LooGLESimilarity",
    "loogle_cloze": "long_context.loogle:LooGLECloze",
    "meteor_coco": "coco.scores:MeteorCoco",
    "mrcr": "long_context.needles:MrcrRatio",
    "no_answer": "f1_macro:NoAnswer",
    "nolima": "long_context.needles:NoLiMaContains",
    "option_letter": "zero_scrolls:OptionLetter",
    "pan21": "pan21:StyleChangeF1",
    "recall": "recall:Recall",
    "recall_read": "recall:RecallRead",
    "rouge": "rouge:Rouge",
    "rouge_l_coco": "coco.scores:RougeLCoco",
    "rouge_scrolls": "rouge:RougeScrolls",
    "shuffle_accuracy": "shuffle_accuracy:ShuffleAccuracy",
    "string_match_all": "long_context.needles:StringMatchAll",
    "string_match_part": "long_context.needles:StringMatchPart",
    "typed_match": "typed_match:TypedMatch",
}
METRICS: Mapping[str, type[Metric]] = lazy_classes(
    {name: f"leporello.metrics.{module}" for name, module in _MODULES.items()}
)

# Recall scores the hits (decision 25). BLEU-4 and METEOR of a right answer of one word are low.
_NOT_JUDGING = ("recall", "bleu", "meteor")


def judging_metric(names: Iterable[str]) -> str:
    """Returns the first metric that shows whether an answer is right; empty without metrics."""
    listed = [*names]
    judging = [name for name in listed if not name.startswith(_NOT_JUDGING)]
    return next(iter([*judging, *listed]), "")


def check_metrics(entries: Iterable[MetricEntry]) -> None:
    """Raises UserError for entries without a name or with an unknown one; ignores parameters."""
    for entry in entries:
        name = entry if isinstance(entry, str) else entry.get("class")
        if not isinstance(name, str):
            raise UserError(f"a metric must be a name or a mapping with `class`, got {entry!r:.80}")
        find_class(name, METRIC, Path())
