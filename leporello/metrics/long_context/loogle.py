"""LooGLE's automatic scores, as in its `automatic_eval.py`.

Three scores are left out: BERTScore needs a model of 1.4 GB, GPT-4's judgement needs a server, and
METEOR is not reproducible, since the authors pass sets of words, whose order changes per process.
"""

import ast
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError, Statistics, Summed
from leporello.metrics.rouge import grams, rouge_l, rouge_n


@dataclass(frozen=True)
class LooGLESimilarity(Averaged):
    """BLEU-1 and BLEU-4 of single answers, and the recall of ROUGE-1, -2 and -L.

    BLEU-4 is the share of runs of four words that are in the reference, with the brevity penalty,
    without a mean over shorter runs. ROUGE is computed as in the package `rouge`; `loogle_rouge_l`
    ranks pipelines. An empty answer is scored as the word `None`.
    """

    name = "loogle"
    signature = "loogle|bleu:1,4|rouge:1,2,L,recall|average:mean|version:1"

    headline = "loogle_rouge_l"

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns the five scores against the first reference."""
        text, gold = text or "None", example.references[0]
        words = text.split(), gold.split()
        scores = {f"loogle_bleu{n}": _bleu(*words, n) for n in (1, 4)}
        scores |= {f"loogle_rouge{n}": rouge_n(text, gold, n).recall for n in (1, 2)}
        scores[self.headline] = rouge_l(text, gold).recall
        return {name: 100.0 * score for name, score in scores.items()}


def _bleu(guess: Sequence[str], reference: Sequence[str], n: int) -> float:
    """Returns the precision of n-grams with the brevity penalty, 0 to 1."""
    answer_grams, reference_grams = (Counter(grams(words, n)) for words in (guess, reference))
    shared = (answer_grams & reference_grams).total()
    if not shared:
        return 0.0
    penalty = math.exp(min(0.0, 1 - len(reference) / len(guess)))
    return penalty * shared / answer_grams.total()


@dataclass(frozen=True)
class LooGLECloze(Summed):
    """Shares of all masks that are filled exactly, and that are filled at least partially.

    The answer must be a Python dictionary, `{'<mask-0>': 'Bob'}`, and nothing else. A mask is
    filled partially if the answer shares a word. The reference is the dictionary as JSON. Answers
    are parsed as literals, whereas the authors run them as code: calls and names do not count.
    """

    name = "loogle_cloze"
    signature = "loogle_cloze|match:exact,partial|average:over-masks|version:1"

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns numbers of masks: filled exactly, at least partially, and all."""
        gold, answers = _reference(example), _dictionary(text)
        exact = sum(answers.get(mask) == right for mask, right in gold.items())
        words = {mask: fill.split() for mask, fill in answers.items() if isinstance(fill, str)}
        partial = sum(not {*words.get(mask, ())}.isdisjoint(gold[mask].split()) for mask in gold)
        return {"exact": exact, "partial": partial, "masks": len(gold)}

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the numbers of masks: filled exactly, at least partially, and all."""
        return [statistics["exact"], statistics["partial"], statistics["masks"]]

    def scores(self, row: Sequence[float]) -> dict[str, float]:
        """Returns the shares of masks that are filled exactly, and at least partially."""
        exact, partial, masks = row
        return {self.name: 100 * exact / masks, f"{self.name}_partial": 100 * partial / masks}


def _reference(example: Example) -> Mapping[str, str]:
    try:
        gold = json.loads(example.references[0])
    except ValueError:
        gold = None
    if isinstance(gold, dict) and gold and all(isinstance(text, str) for text in gold.values()):
        return gold
    fault = f"the reference {example.references[0]!r:.80} is not a JSON object of masks and texts"
    raise GoldError(example, fault)


def _dictionary(text: str) -> Mapping[Any, Any]:
    """Returns the dictionary that an answer contains as Python source; empty if it is not one."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
