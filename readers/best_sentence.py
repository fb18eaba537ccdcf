"""A baseline that reads without a model: the sentence that shares most with the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

_EVIDENCE = 3  # sentences that a choice is compared with
# Rare among the few sentences that are read, an "in" would weigh more than a name.
_FUNCTION_WORDS = frozenset(FUNCTION_WORDS)


@dataclass(frozen=True)
class BestSentence(TakesCalibration, OneByOne):
    """Answers with the sentence whose terms overlap most with the question's; no model.

    A term weighs log(1 + sentences / sentences that have it), so that what every sentence says
    counts little; a question's function words decide between sentences that share as much of the
    others. Of equal sentences the first is taken; without a question, the first of all.
    Of choices, the one is taken whose share of weighted terms found in the three best sentences
    is largest.

    Attributes:
        sentences: Number of sentences of an answer, best first, where several things are asked.
        calibration: JSON file that `train --calibrate` wrote, from scores to probabilities.
    """

    sentences: Positive = 1
    calibration: Path | None = None

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order."""
        return calibrated(super().read(inputs), self.calibration)

    def _answer(self, read: Read) -> Output:
        return _answer(read, self.sentences)


def _answer(read: Read, count: int) -> Output:
    passages = [(passage, passage_text(passage)) for passage in read.passages]
    found = [(p, text, *ends) for p, text in passages for ends in sentence_spans(text)]
    positions = [(passage, start, end) for passage, _, start, end in found]
    sentences = [text[start:end] for _, text, start, end in found]
    overlap = _Overlap([frozenset(terms(sentence)) for sentence in sentences])
    asked = terms(read.question)
    shares = overlap.shares(asked, overlap.sentences)
    content = overlap.shares([t for t in asked if t not in _FUNCTION_WORDS], overlap.sentences)
    # Stable: the first of equals.
    ranked = sorted(range(len(sentences)), key=lambda i: (-content[i], -shares[i]))
    seen = spans_of(read.passages)
    if read.choices:
        best = ranked[:_EVIDENCE] if read.question else ranked
        evidence = frozenset[str]().union(*(overlap.sentences[i] for i in best))
        scores = tuple(overlap.shares(terms(choice), [evidence])[0] for choice in read.choices)
        choice = scores.index(max(scores))
        return Output(read.choices[choice], scores[choice], scores, read=seen)
    if not ranked:
        return Output("", 0.0, read=seen)
    if read.schema:
        return _typed(read, [found[i] for i in ranked], [shares[i] for i in ranked], seen)
    first = ranked[0]
    text = " ".join(sentences[index] for index in ranked[:count])
    span = span_in(*positions[first]) if count == 1 else None
    return Output(text, shares[first], read=seen, span=span)


def _typed(
    read: Read,
    ranked: Sequence[tuple[Chunk | str, str, int, int]],
    shares: Sequence[float],
    seen: tuple[Span, ...],
) -> Output:
    """Returns the first value of the type in the best sentences; none if there is none."""
    spans = [(number, start, end) for number, (_, _, start, end) in enumerate(ranked)]
    best = best_typed(read.schema, spans, [text for _, text, _, _ in ranked])
    if best is None:
        return Output("", 0.0, read=seen)
    passage, text, _, _ = ranked[best.rank]
    span = span_in(passage, best.start, best.end)
    return Output(text[best.start : best.end], shares[best.rank], read=seen, span=span)


class _Overlap:
    """Compares terms with the sentences of one input, rare terms weighing more."""

    def __init__(self, sentences: Sequence[frozenset[str]]) -> None:
        self.sentences = sentences
        self._frequency = Counter(term for sentence in sentences for term in sentence)

    def shares(self, terms: Iterable[str], candidates: Iterable[frozenset[str]]) -> list[float]:
        """Returns which share of the terms, by weight, is in each of the candidates: 0 to 1."""
        weights = {term: self._weight(term) for term in terms}
        # Sums are exact, so that the order of terms cannot matter.
        total = fsum(weights.values()) or 1.0
        return [fsum(weights[t] for t in weights.keys() & each) / total for each in candidates]

    def _weight(self, term: str) -> float:
        return log1p(len(self.sentences) / max(1, self._frequency[term]))
