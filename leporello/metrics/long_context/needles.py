"""Scores of RULER, BABILong, HELMET, OpenAI-MRCR, GraphWalks and NoLiMa, as in their code."""

import json
import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher

from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import Averaged, GoldError, Statistics, gold_entry
from leporello.text.squad import normalise

_CONTROL = re.compile(r"[\x00-\x1f]")
_PAIR = 3  # a comma in at most 3 letters does not separate answers: qa19's `n,w`


def _shares(text: str, example: Example) -> list[float]:
    """Returns 1 for each reference that the answer contains, ignoring case, otherwise 0."""
    text = _CONTROL.sub("\n", text.strip()).strip().lower()
    return [float(reference.lower() in text) for reference in example.references]


@dataclass(frozen=True)
class StringMatchAll(Averaged):
    """Share of the references that the answer contains, ignoring case (RULER).

    Additional text in the answer is not penalised: a copy of the document would score 100.
    """

    name = "string_match_all"
    signature = "string_match_all|case:lower|references:mean|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the share of the references."""
        shares = _shares(text, example)
        return 100 * sum(shares) / len(shares)


@dataclass(frozen=True)
class StringMatchPart(Averaged):
    """Whether the answer contains any reference, ignoring case (RULER's questions)."""

    name = "string_match_part"
    signature = "string_match_part|case:lower|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0."""
        return 100 * max(_shares(text, example))


@dataclass(frozen=True)
class BabilongAccuracy(Averaged):
    """Whether the answer names the right label and no other (BABILong's `compare_answers`).

    Labels are the task's labels, under `gold` in the metadata, except those that the question
    names. Only the first sentence of the answer counts.
    """

    name = "babilong_accuracy"
    signature = "babilong_accuracy|labels:only|sentence:first|average:mean|version:1"

    def measured(self, text: str, example: Example) -> Statistics | None:
        """Returns `babilong_accuracy`, 100 or 0; None without labels."""
        labels = {label.lower() for label in gold_entry(example, "labels") or ()}
        texts = (example.references[0].lower(), text.lower(), example.question.lower())
        return {self.name: 100.0 * _names_only(*texts, labels)} if labels else None


def _names_only(target: str, answer: str, question: str, labels: Collection[str]) -> bool:
    for end in (".", "<context>", "<example>"):
        answer = answer.partition(end)[0]
    predicted = {label for label in labels if label in answer and label not in question}
    expected = target.split(",") if "," in target and len(target) > _PAIR else [target]
    return predicted.issuperset(expected) and len(predicted) == len(expected)


_NODES = re.compile(r"Final Answer: ?\[")


@dataclass(frozen=True)
class MrcrRatio(Averaged):
    """Ratio of difflib's `SequenceMatcher` between answer and reference (OpenAI-MRCR).

    Both begin with random letters that the question asks for, `prefix` under `gold` in the
    metadata; an answer that does not begin with them scores 0.
    """

    name = "mrcr"
    signature = "mrcr|ratio:difflib|prefix:required|average:mean|version:1"

    def measured(self, text: str, example: Example) -> Statistics | None:
        """Returns `mrcr`, 0 to 100; None without prefix."""
        prefix = gold_entry(example, "prefix")
        if not isinstance(prefix, str):
            return None
        if not text.startswith(prefix):
            return {self.name: 0.0}
        answer, gold = (t.removeprefix(prefix) for t in (text, example.references[0]))
        return {self.name: 100 * SequenceMatcher(None, answer, gold).ratio()}


@dataclass(frozen=True)
class GraphWalksF1(Averaged):
    """F1 of the set of nodes in the last line of an answer, `Final Answer: [a, b]` (GraphWalks).

    The reference is a JSON list of nodes. Two empty sets score 100, an answer without the list 0.
    """

    name = "graphwalks"
    signature = "graphwalks|nodes:last-line|empty:100|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the score."""
        gold = _gold_nodes(example)
        if (nodes := _nodes(text)) is None:
            return 0.0
        if not gold and not nodes:
            return 100.0
        # Precision and recall have the same numerator, so F1 needs no division by either.
        return 200 * len(gold & nodes) / (len(gold) + len(nodes))


@dataclass(frozen=True)
class NoLiMaContains(Averaged):
    """Whether the answer contains a reference, in the same case (NoLiMa's metric `contains`)."""

    name = "nolima"
    signature = "nolima|case:exact|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0."""
        return 100.0 * any(reference in text for reference in example.references)


def _nodes(text: str) -> set[str] | None:
    """Returns the nodes between the first `Final Answer: [` of the last line and its last `]`."""
    line = text.rsplit("\n", maxsplit=1)[-1]
    list_of_nodes = line[: max(line.rfind("]"), 0)]
    if (match := _NODES.search(list_of_nodes)) is None:
        return None
    return {node.strip() for node in list_of_nodes[match.end() :].strip("[]").split(",")} - {""}


def _gold_nodes(example: Example) -> set[str]:
    try:
        nodes = json.loads(example.references[0])
    except ValueError:
        nodes = None
    if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
        reference = example.references[0]
        raise GoldError(example, f"the reference {reference!r:.80} is not a JSON list of nodes")
    return set(nodes)


_RANKING = re.compile(r"(\d+)(?:\s*>\s*(\d+))*")
_CUT = 10


@dataclass(frozen=True)
class HelmetSubstring(Averaged):
    """Whether the answer contains a reference, ignoring case, punctuation and articles (HELMET)."""

    name = "helmet_substring"
    signature = "helmet_substring|normalisation:squad-v1|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0."""
        answer = normalise(text)
        return 100.0 * any(normalise(reference) in answer for reference in example.references)


@dataclass(frozen=True)
class HelmetNdcg(Averaged):
    """NDCG of the first ten ids in a ranking such as `3 > 1 > 2` (HELMET).

    The relevance of each id is `relevance` under `gold` in the metadata.
    """

    name = "helmet_ndcg"
    signature = "helmet_ndcg|cut:10|gain:linear|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `helmet_ndcg`, 0 to 100; None without relevance."""
        if not (relevance := gold_entry(example, "relevance")):
            return None
        ideal = _gain(sorted(relevance.values(), reverse=True))
        gain = _gain(relevance.get(name, 0) for name in _ranking(prediction.prediction))
        return {self.name: 100 * gain / ideal if ideal else 0.0}


def _gain(labels: Iterable[int]) -> float:
    """Returns the discounted gain of the first ten labels; negative ones count as 0."""
    return sum(max(label, 0) / math.log2(rank + 2) for rank, label in enumerate([*labels][:_CUT]))


def _ranking(text: str) -> list[str]:
    """Returns the distinct ids of the longest ranking in a text."""
    text = re.sub(r"[\[\]:]", "", text).lower().replace("id", "")
    longest = max((match[0] for match in _RANKING.finditer(text)), key=len, default="")
    names = (name.strip() for name in longest.split(">"))
    return [*dict.fromkeys(name for name in names if name.isdigit())]
