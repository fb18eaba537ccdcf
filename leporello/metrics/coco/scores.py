"""BLEU, ROUGE-L and METEOR as in coco-caption, which NarrativeQA and MuLD report."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_

from leporello.core.records import Example
from leporello.metrics.coco.java import LineProcess, coco_program, coco_words, need_coco
from leporello.metrics.protocol import Averaged, Statistics, Summed
from leporello.metrics.rouge import grams
from leporello.text.lcs import lcs_length, places

_ORDERS = (1, 2, 3, 4)
_TINY, _SMALL = 1e-15, 1e-9  # as in coco-caption: without overlap BLEU is nearly zero
_BETA = 1.2
_WORDS = "words:ptb-3.4.1,lower,no-punctuation"


class _OfPrograms(Summed):
    """Base of metrics that run coco-caption's programs, which is slow."""

    later = True

    def __post_init__(self) -> None:
        need_coco(self.name)


@dataclass(frozen=True)
class BleuCoco(_OfPrograms):
    """BLEU-1 to -4 over a corpus, as coco-caption computes them; needs Java and the extra `muld`.

    Counts of all examples are summed; the reference length of an example is the length of its
    reference that is nearest in length to the answer. BLEU-4 of answers of one to three words is
    nearly zero, right or wrong.
    """

    name = "bleu_coco"
    headline = "bleu_4"
    signature = f"bleu_coco|{_WORDS}|length:closest|smoothing:1e-15,1e-9|average:corpus|version:1"

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns `correct` and `guessed` n-grams by order, and lengths: answer, reference."""
        texts = coco_words(text, *example.references)
        guess, *references = (words.split() for words in texts)
        size = len(guess)
        return {
            "correct": [_correct(guess, references, k) for k in _ORDERS],
            "guessed": [max(0, size - k + 1) for k in _ORDERS],
            "given": size,
            # If two references are equally near, the shorter one counts, as in coco-caption.
            "wanted": min((abs(len(words) - size), len(words)) for words in references)[1],
        }

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns correct and guessed n-grams of each order, and the two lengths."""
        sizes = statistics["given"], statistics["wanted"]
        return [*statistics["correct"], *statistics["guessed"], *sizes]

    def scores(self, row: Sequence[float]) -> dict[str, float]:
        """Returns `bleu_1` to `bleu_4` of the counts."""
        *grams, guess_size, reference_size = row
        ratio = (guess_size + _TINY) / (reference_size + _SMALL)
        brevity = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
        shares = [(c + _TINY) / (g + _SMALL) for c, g in zip(grams[:4], grams[4:], strict=True)]
        return {f"bleu_{k}": 100 * (brevity * math.prod(shares[:k]) ** (1 / k)) for k in _ORDERS}


def _correct(guess: Sequence[str], references: Iterable[Sequence[str]], order: int) -> int:
    """Counts the answer's n-grams, each up to its highest count in one reference."""
    most = reduce(or_, (Counter(grams(words, order)) for words in references))
    return (Counter(grams(guess, order)) & most).total()


@dataclass(frozen=True)
class RougeLCoco(_OfPrograms, Averaged):
    """ROUGE-L as coco-caption computes it; needs Java and the extra `muld`.

    Recall weighs 1.44 times as much as precision. The score uses the best precision and the best
    recall, even from different references, and averages over examples. Two texts without words are
    equal, and score 100.
    """

    name = "rouge_l_coco"
    signature = f"rouge_l_coco|{_WORDS}|beta:1.2|references:max-per-side|average:mean|version:1"

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


# METEOR 1.5 for English: weights of exact, stem, synonym and paraphrase matches; recall against
# precision; exponent and weight of fragmentation; content words against function words.
_WEIGHTS = (1.0, 0.6, 0.8, 0.6)
_ALPHA, _FRAGMENTS, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75
_FIELDS = 23  # numbers in a line of METEOR's output; `_meteor` describes them


@dataclass(frozen=True)
class MeteorCoco(_OfPrograms):
    """METEOR 1.5 over a corpus, with coco-caption's words; needs Java and the extra `muld`.

    Each example contributes the counts for its best reference. The options are for English,
    whatever the language, as in coco-caption. METEOR is meant for sentences: a text of 1,000 words
    takes seconds, a text of 5,000 words takes minutes.
    """

    name = "meteor_coco"
    signature = (
        "meteor_coco|words:ptb-3.4.1,lower,no-punctuation|meteor:1.5,en,norm,rank|average:corpus"
        "|version:1"
    )

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns the 23 `counts` in METEOR's line of output."""
        guess, *references = coco_words(text, *example.references)
        # METEOR separates texts by `|||`.
        parts = [words.replace("|||", "") for words in (*references, guess)]
        [line] = _meteor_program().ask([" ||| ".join(["SCORE", *parts])], 1)
        counts = [float(number) for number in line.split()]
        if len(counts) != _FIELDS:
            _meteor_program().close()
            raise RuntimeError(f"METEOR answered {line!r:.200}")
        return {"counts": counts}

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the counts; two texts that match completely as a single chunk have no chunk."""
        *before, chunks, guess_matched, reference_matched = counts = statistics["counts"]
        is_whole = chunks == 1 and [guess_matched, reference_matched] == counts[:2]
        return [*before, 0.0 if is_whole else chunks, guess_matched, reference_matched]

    def scores(self, row: Sequence[float]) -> dict[str, float]:
        """Returns METEOR of the summed counts, which is not the mean over examples."""
        return {self.name: 100 * _meteor(row)}


def _meteor(counts: Sequence[float]) -> float:
    """Returns METEOR, 0 to 1, of 23 counts in METEOR's order.

    They are words of both texts; function words of both texts; for each kind of match the matched
    content words, then function words, of both texts; chunks; all matched words of both texts.
    """
    guess, reference, guess_function, reference_function = counts[:4]
    chunks, guess_matched, reference_matched = counts[20:]
    precision = _matched_share(counts[4:20:2], guess, guess_function)
    recall = _matched_share(counts[5:20:2], reference, reference_function)
    if not (precision and recall):
        return 0.0
    mean = 1 / ((1 - _ALPHA) / precision + _ALPHA / recall)
    fragmentation = chunks / ((guess_matched + reference_matched) / 2)
    return float(mean * (1 - _GAMMA * fragmentation**_FRAGMENTS))


def _matched_share(matched: Sequence[float], words: float, function_words: float) -> float:
    """Returns the weighted share of a text's words that match the other text.

    `matched` has the numbers of matched content words and function words, by kind of match.
    """
    weight = _DELTA * (words - function_words) + (1 - _DELTA) * function_words
    pairs = zip(_WEIGHTS, matched[::2], matched[1::2], strict=True)
    matches = sum(
        w * (_DELTA * content + (1 - _DELTA) * function) for w, content, function in pairs
    )
    return matches / weight if weight else 0.0


@cache
def _meteor_program() -> LineProcess:
    options = ["-", "-", "-stdio", "-l", "en", "-norm"]
    return coco_program("meteor", "-Xmx2G", "-jar", "meteor-1.5.jar", *options)
