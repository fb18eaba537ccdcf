"""Reader without a model: returns the sentence that shares most words with the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum, log1p
from pathlib import Path

from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Output, Read, Span
from leporello.models.calibration import TakesCalibration, calibrated
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.classical.stylometry import FUNCTION_WORDS
from leporello.readers.prompting.template import passage_text, span_in, spans_of
from leporello.text.sentences import sentence_spans
from leporello.text.tokens import terms
from leporello.text.typed.spans import best_typed

_EVIDENCE = 3  # sentences that choices are compared with
# Frequencies in a few sentences are unreliable: a rare "in" would weigh more than a name.
_FUNCTION_WORDS = frozenset(FUNCTION_WORDS)


@dataclass(frozen=True)
class BestSentence(TakesCalibration, OneByOne):
    """Answers with the sentence whose terms overlap most with the question's; no model.

    The weight of a term is log(1 + sentences / sentences with the term), so frequent terms count
    little. The question's function words decide only between equally good sentences, then the order
    in the document. Without a question, the answer is the first sentence. With choices, the answer
    is the choice with the largest weighted share of its terms in the three best sentences.

    Attributes:
        sentences: Number of sentences per answer, best first, for questions about several things.
        calibration: JSON file that `train --calibrate` wrote, from scores to probabilities.
    """

    sentences: Positive = 1
    calibration: Path | None = None

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order."""
        return calibrated(super().read(inputs), self.calibration)

    def _answer(self, read: Read) -> Output:
        passages = [(passage, passage_text(passage)) for passage in read.passages]
        located = [(p, text, *ends) for p, text in passages for ends in sentence_spans(text)]
        sentences = [text[start:end] for _, text, start, end in located]
        bags = [frozenset(terms(sentence)) for sentence in sentences]
        frequency = Counter(chain.from_iterable(bags))
        weights = _weights(terms(read.question), frequency, len(bags))
        shares = _shares(weights, bags)
        content = _shares({t: w for t, w in weights.items() if t not in _FUNCTION_WORDS}, bags)
        # The sort is stable, so the first of equal sentences wins.
        ranked = sorted(range(len(sentences)), key=lambda i: (-content[i], -shares[i]))
        spans = spans_of(read.passages)
        if read.choices:
            best = ranked[:_EVIDENCE] if read.question else ranked
            evidence = frozenset[str]().union(*(bags[i] for i in best))
            choices = (_weights(terms(text), frequency, len(bags)) for text in read.choices)
            scores = tuple(_shares(weights, [evidence])[0] for weights in choices)
            choice = scores.index(max(scores))
            return Output(read.choices[choice], scores[choice], scores, read=spans)
        if not ranked:
            return Output("", 0.0, read=spans)
        if read.schema:
            return _typed(read, [located[i] for i in ranked], [shares[i] for i in ranked], spans)
        first = ranked[0]
        text = " ".join([sentences[index] for index in ranked[: self.sentences]])
        passage, _, start, end = located[first]
        span = span_in(passage, start, end) if self.sentences == 1 else None
        return Output(text, shares[first], read=spans, span=span)


def _typed(
    read: Read,
    ranked: Sequence[tuple[Chunk | str, str, int, int]],
    shares: Sequence[float],
    spans: tuple[Span, ...],
) -> Output:
    """Returns the first value of the type in the best sentences; empty without such a value."""
    places = [(number, start, end) for number, (_, _, start, end) in enumerate(ranked)]
    best = best_typed(read.schema, places, [text for _, text, _, _ in ranked])
    if best is None:
        return Output("", 0.0, read=spans)
    passage, text, _, _ = ranked[best.rank]
    span = span_in(passage, best.start, best.end)
    return Output(text[best.start : best.end], shares[best.rank], read=spans, span=span)


def _weights(terms: Iterable[str], frequency: Mapping[str, int], count: int) -> dict[str, float]:
    """Returns the weight of each term by its frequency in a number of sentences."""
    return {term: log1p(count / frequency.get(term, 1)) for term in terms}


def _shares(weights: Mapping[str, float], candidates: Iterable[frozenset[str]]) -> list[float]:
    """Returns the weighted share of the terms in each candidate, 0 to 1."""
    # Exact sums, since the order of terms in a set may vary.
    total = fsum(weights.values()) or 1.0
    shared = (weights.keys() & candidate for candidate in candidates)
    return [fsum(map(weights.__getitem__, common)) / total for common in shared]
