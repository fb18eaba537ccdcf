"""LooGLE's automatic scores, as its own `automatic_eval.py` computes them.

Not those that need more than arithmetic: BERTScore (a model of 1.4 GB), the judgement of GPT-4, and
METEOR, for which the authors pass sets of words, whose order changes from one process to the next.
"""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.long_context.rouge_sets import rouge_l, rouge_n
from leporello.metrics.protocol import Averaged, GoldError, Statistics, Summed


@dataclass(frozen=True)
class LooGLESimilarity(Averaged):
    """BLEU-1 and BLEU-4 of single sentences, and the recall of ROUGE-1, -2 and -L.

    BLEU-4 is the share of runs of four words that are the reference's, with the brevity penalty,
    and no mean over shorter runs. ROUGE is that of the package `rouge`, and `loogle_rouge_l` the
    score that pipelines are ranked by. An empty answer is scored as the word `None`.
    """

    name: ClassVar[str] = "loogle"
    signature: ClassVar[str] = "loogle|bleu:1,4|rouge:1,2,L,recall|average:mean|version:1"

    headline = "loogle_rouge_l"

    def score(self, statistics: Statistics) -> float:
        """Returns the example's recall of ROUGE-L."""
        return float(statistics[self.headline])

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the five scores, or None where there are no references; the first one counts."""
        if not example.references:
            return None
        text, gold = prediction.prediction or "None", example.references[0]
        words = text.split(), gold.split()
        scores = {f"loogle_bleu{n}": _bleu(*words, n) for n in (1, 4)}
        scores |= {f"loogle_rouge{n}": rouge_n(text, gold, n).recall for n in (1, 2)}
        scores[self.headline] = rouge_l(text, gold).recall
        return {name: 100.0 * score for name, score in scores.items()}


def _bleu(guess: Sequence[str], reference: Sequence[str], n: int) -> float:
    """Returns the precision of n-grams with the brevity penalty, 0 to 1."""
    ours, theirs = (
        Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        for words in (guess, reference)
    )
    shared = (ours & theirs).total()
    if not shared:
        return 0.0
    penalty = math.exp(min(0.0, 1 - len(reference) / len(guess)))
    return penalty * shared / ours.total()


@dataclass(frozen=True)
class LooGLECloze(Summed):
    """The share of masks that are filled exactly, and in part, over all masks of all questions.

    The answer must be a dictionary in Python's writing, `{'<mask-0>': 'Bob'}`, and nothing else;
    in part means that it shares a word. The reference is the dictionary as JSON. What the authors
    run as code is read as data here: calls and names are no answer.
    """

    name: ClassVar[str] = "loogle_cloze"
    signature: ClassVar[str] = "loogle_cloze|match:exact,partial|average:over-masks|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns numbers of masks: filled exactly, in part, and all; None without references.

        Raises:
            GoldError: A reference that is no dictionary of texts.
        """
        if not example.references:
            return None
        gold, given = _masks(example), _dictionary(prediction.prediction)
        exact = sum(given.get(mask) == text for mask, text in gold.items())
        words = {mask: text.split() for mask, text in given.items() if isinstance(text, str)}
        partial = sum(not {*words.get(mask, ())}.isdisjoint(gold[mask].split()) for mask in gold)
        return {"exact": exact, "partial": partial, "masks": len(gold)}

    def parses(self, text: str, example: Example) -> bool:  # noqa: ARG002 -- of the protocol
        """Says whether a text is a dictionary."""
        return bool(_dictionary(text))

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the shares `loogle_cloze`, filled exactly, and `loogle_cloze_partial`."""
        if not statistics:
            return {}
        names = {self.name: "exact", f"{self.name}_partial": "partial"}
        masks = sum(each["masks"] for each in statistics)
        shares = {name: sum(each[key] for each in statistics) for name, key in names.items()}
        return {name: round(100 * share / masks, 4) for name, share in shares.items()}

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the masks filled exactly, and all."""
        return [statistics["exact"], statistics["masks"]]

    def of_row(self, row: Sequence[float]) -> float:
        """Returns the share of masks that are filled exactly."""
        exact, masks = row
        return 100 * exact / masks


def _masks(example: Example) -> Mapping[str, str]:
    try:
        gold = json.loads(example.references[0])
    except ValueError:
        gold = None
    if isinstance(gold, dict) and gold and all(isinstance(each, str) for each in gold.values()):
        return gold
    fault = f"the reference {example.references[0]!r:.80} is no JSON object of masks and texts"
    raise GoldError(example, fault)


def _dictionary(text: str) -> Mapping[Any, Any]:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
