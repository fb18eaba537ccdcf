"""METEOR 1.5 as coco-caption runs it; Java aligns the words, Python computes the score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.coco.java import LineProcess, coco_program, coco_words, need_coco
from leporello.metrics.protocol import Statistics, Summed, column_sums

# METEOR 1.5 for English: weights of exact, stem, synonym and paraphrase matches; recall against
# precision; exponent and weight of fragmentation; content words against function words.
_WEIGHTS = (1.0, 0.6, 0.8, 0.6)
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75
_FIELDS = 23  # numbers in a line of METEOR's output; `meteor` describes them


@dataclass(frozen=True)
class MeteorCoco(Summed):
    """METEOR 1.5 over a corpus, with coco-caption's words; needs Java and the extra `muld`.

    Each example contributes the counts for its best reference. The options are for English,
    whatever the language, as in coco-caption. METEOR is meant for sentences: a text of 1,000 words
    takes seconds, a text of 5,000 words takes minutes.
    """

    later: ClassVar[bool] = True
    name: ClassVar[str] = "meteor_coco"
    signature: ClassVar[str] = (
        "meteor_coco|words:ptb-3.4.1,lower,no-punctuation|meteor:1.5,en,norm,rank|average:corpus"
        "|version:1"
    )

    def __post_init__(self) -> None:
        need_coco(self.name)

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the 23 `counts` in METEOR's line of output; None without references."""
        if not example.references:
            return None
        guess, *references = coco_words(prediction.prediction, *example.references)
        # METEOR separates texts by `|||`.
        parts = [words.replace("|||", "") for words in (*references, guess)]
        [line] = _program().ask([" ||| ".join(["SCORE", *parts])], 1)
        counts = [float(number) for number in line.split()]
        if len(counts) != _FIELDS:
            _program().close()
            raise RuntimeError(f"METEOR answered {line!r:.200}")
        return {"counts": counts}

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns `meteor_coco` of the summed counts, which is not the mean over examples."""
        if not statistics:
            return {}
        return {self.name: round(100 * meteor(s["counts"] for s in statistics), 4)}

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the counts."""
        return _without_single_chunk(statistics["counts"])

    def of_row(self, row: Sequence[float]) -> float:
        """Returns METEOR of the counts."""
        return 100 * _meteor(row)


def meteor(segments: Iterable[Sequence[float]]) -> float:
    """Returns METEOR, 0 to 1, of the summed counts of segments.

    A segment has 23 counts in METEOR's order: words of both texts; function words of both texts;
    for each kind of match the matched content words, then function words, of both texts; chunks;
    all matched words of both texts.
    """
    return _meteor(column_sums(map(_without_single_chunk, segments)))


def _meteor(counts: Sequence[float]) -> float:
    guess, reference, guess_function, reference_function = counts[:4]
    chunks, guess_matched, reference_matched = counts[20:]
    precision = _matched_share(counts[4:20:2], guess, guess_function)
    recall = _matched_share(counts[5:20:2], reference, reference_function)
    if not (precision and recall):
        return 0.0
    mean = 1 / ((1 - _ALPHA) / precision + _ALPHA / recall)
    fragmentation = chunks / ((guess_matched + reference_matched) / 2)
    return float(mean * (1 - _GAMMA * fragmentation**_BETA))


def _without_single_chunk(counts: Sequence[float]) -> Sequence[float]:
    """Sets the number of chunks to 0 if two texts match completely as a single chunk."""
    *before, chunks, guess_matched, reference_matched = counts
    if chunks == 1 and [guess_matched, reference_matched] == [*counts[:2]]:
        return [*before, 0.0, guess_matched, reference_matched]
    return counts


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
def _program() -> LineProcess:
    options = ["-", "-", "-stdio", "-l", "en", "-norm"]
    return coco_program("meteor", "-Xmx2G", "-jar", "meteor-1.5.jar", *options)
