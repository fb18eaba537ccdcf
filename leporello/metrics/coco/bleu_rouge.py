"""BLEU and ROUGE-L as in coco-caption, which NarrativeQA and MuLD report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.coco.java import coco_words, need_coco
from leporello.metrics.protocol import Averaged, Statistics, Summed, column_sums
from leporello.text.lcs import lcs_length, places

_ORDERS = (1, 2, 3, 4)
_TINY, _SMALL = 1e-15, 1e-9  # as in coco-caption: without overlap BLEU is nearly zero
_BETA = 1.2
_WORDS = "words:ptb-3.4.1,lower,no-punctuation"


@dataclass(frozen=True)
class BleuCoco(Summed):
    """BLEU-1 to -4 over a corpus, as coco-caption computes them; needs Java and the extra `muld`.

    Counts of all examples are summed; the reference length of an example is the length of its
    reference that is nearest in length to the answer. BLEU-4 of answers of one to three words is
    nearly zero, right or wrong.
    """

    later: ClassVar[bool] = True
    name: ClassVar[str] = "bleu_coco"
    headline = "bleu_4"
    signature: ClassVar[str] = (
        f"bleu_coco|{_WORDS}|length:closest|smoothing:1e-15,1e-9|average:corpus|version:1"
    )

    def __post_init__(self) -> None:
        need_coco(self.name)

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `correct` and `guessed` n-grams by order, and lengths: answer, reference."""
        if not example.references:
            return None
        texts = coco_words(prediction.prediction, *example.references)
        guess, *references = (words.split() for words in texts)
        size = len(guess)
        return {
            "correct": [_correct(guess, references, k) for k in _ORDERS],
            "guessed": [max(0, size - k + 1) for k in _ORDERS],
            "given": size,
            # If two references are equally near, the shorter one counts, as in coco-caption.
            "wanted": min((abs(len(words) - size), len(words)) for words in references)[1],
        }

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns `bleu_1` to `bleu_4` over all counts."""
        if not statistics:
            return {}
        scores = bleu(statistics)
        return {
            f"bleu_{k}": round(100 * score, 4) for k, score in zip(_ORDERS, scores, strict=True)
        }

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns correct and guessed n-grams of each order, and the two lengths."""
        return _counts(statistics)

    def of_row(self, row: Sequence[float]) -> float:
        """Returns BLEU-4 of the counts."""
        return 100 * _bleu(row)[-1]


def bleu(statistics: Sequence[Statistics]) -> list[float]:
    """Returns BLEU-1 to BLEU-4, 0 to 1, from the statistics of `BleuCoco`."""
    return _bleu(column_sums(map(_counts, statistics)))


def _bleu(counts: Sequence[float]) -> list[float]:
    *grams, guess_size, reference_size = counts
    ratio = (guess_size + _TINY) / (reference_size + _SMALL)
    brevity = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    shares = [(c + _TINY) / (g + _SMALL) for c, g in zip(grams[:4], grams[4:], strict=True)]
    return [brevity * math.prod(shares[:k]) ** (1 / k) for k in _ORDERS]


def _counts(statistics: Statistics) -> list[float]:
    sizes = statistics["given"], statistics["wanted"]
    return [*statistics["correct"], *statistics["guessed"], *sizes]


def _correct(guess: Sequence[str], references: Iterable[Sequence[str]], order: int) -> int:
    """Counts the answer's n-grams, each up to its highest count in one reference."""
    most = reduce(or_, (_grams(words, order) for words in references))
    return (_grams(guess, order) & most).total()


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[first:] for first in range(order)), strict=False))


@dataclass(frozen=True)
class RougeLCoco(Averaged):
    """ROUGE-L as coco-caption computes it; needs Java and the extra `muld`.

    Recall weighs 1.44 times as much as precision. The score uses the best precision and the best
    recall, even from different references, and averages over examples. Two texts without words are
    equal, and score 100.
    """

    later: ClassVar[bool] = True
    name: ClassVar[str] = "rouge_l_coco"
    signature: ClassVar[str] = (
        f"rouge_l_coco|{_WORDS}|beta:1.2|references:max-per-side|average:mean|version:1"
    )

    def __post_init__(self) -> None:
        need_coco(self.name)

    def value(self, text: str, example: Example) -> float:
        """Returns the F-measure of the best precision and the best recall."""
        texts = coco_words(text, *example.references)
        guess, *references = (words.split(" ") for words in texts)  # an empty text has one word, ""
        positions = places(guess)
        precision, recall = 0.0, 0.0
        for reference in references:
            common = lcs_length(positions, len(guess), reference)
            precision = max(precision, common / len(guess))
            recall = max(recall, common / len(reference))
        if not (precision and recall):
            return 0.0
        weighted = (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)
        return 100 * weighted
