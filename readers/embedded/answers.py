"""Answers to questions from passages (spans, yes or no, one of two names), and their confidence.

The first read scores each passage alone, without what other passages contain. The second reads the
sentences of the first candidates together, in one window.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leporello.readers.embedded.encoder import TextPair
from leporello.readers.embedded.pairs import by_date, by_value, shared_words
from leporello.readers.embedded.spans import (
    QUESTION_TOKENS,
    Candidate,
    PassageScores,
    SpanHead,
    edges_of,
    summed,
)
from leporello.text.english.questions import (
    asks_for_a_name,
    asks_for_a_reason,
    asks_for_several,
    asks_yes_no,
    named_choices,
)
from leporello.text.log_odds import logistic
from leporello.text.sentences import sentence_spans, sentence_starts
from leporello.text.squad import normalise, token_f1

_SHORT = 3  # usual words of a name, date or number
_WORD_PENALTY = 0.3  # subtracted from the score of a span for each further word
_LIST_BONUS = 3.0  # added to the score of a list if the question asks for several things
_JOINED = re.compile(r", |;|\band\b")
_NAME = 10  # maximum words of a span that may be a name
_SIMILAR = 0.6  # least share of words that two spellings of a name have in common
_ABSENT_PENALTY = 10.0  # subtracted from the score of a name that no span contains
# Chosen on Qasper, MuSiQue, HotpotQA and 2WikiMultihopQA (decision 50).
_COMPARED = 8  # candidates that are read again
_ROOM = 384  # tokens of the window of a second read, without the question
_AROUND = 60  # tokens of a long sentence on each side of a candidate


@dataclass(frozen=True, slots=True)
class Answered:
    """Answers to a question, the best first, and each passage's log odds that it answers."""

    candidates: Sequence[Candidate]
    odds: Sequence[float]


def answer_question(encoder: SpanHead, question: str, passages: Sequence[str]) -> Answered:
    """Returns the answers to a question, by two reads of its passages."""
    scores = encoder.read([(question, text) for text in passages])
    candidates = _of_pair(encoder, question, passages) or _read_again(
        encoder, question, passages, answers(question, passages, scores)
    )
    return Answered(candidates, [passage.odds for passage in scores])


def answers(
    question: str, passages: Sequence[str], scores: Sequence[PassageScores]
) -> list[Candidate]:
    """Returns the answers to a question from the scores of its passages, the best first."""
    if asks_yes_no(question):
        return _yes_or_no(scores)
    if asks_for_a_name(question):
        scores = [*map(_prefer_short, scores)]
    candidates = summed(scores)
    if asks_for_several(question):
        candidates = _prefer_lists(candidates)
    if asks_for_a_reason(question):
        return [_sentence(passages[candidate.passage], candidate) for candidate in candidates]
    names = named_choices(question)
    if names and candidates:
        return sorted((_chosen(n, candidates) for n in names), key=lambda c: -c.score)
    return candidates


def _prefer_short(scores: PassageScores) -> PassageScores:
    """Returns the scores of a passage with a penalty for long spans."""
    spans = []
    for span in scores.spans:
        words = len(span.text.split())
        spans.append(replace(span, score=span.score - _WORD_PENALTY * max(words - _SHORT, 0)))
    return replace(scores, spans=tuple(spans))


def _prefer_lists(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidates with a bonus for those that join several things."""
    joined = [c.score + _LIST_BONUS * bool(_JOINED.search(c.text)) for c in candidates]
    pairs = zip(candidates, joined, strict=True)
    return sorted((replace(c, score=score) for c, score in pairs), key=lambda c: -c.score)


def _sentence(passage: str, candidate: Candidate) -> Candidate:
    """Returns the sentence in which an answer begins; the answer itself in tables."""
    edges = edges_of(passage)
    for first, last in sentence_spans(passage):
        if first <= candidate.start < last and "\t" not in passage[first:last]:
            begin = max([first, *(e for e in edges if e <= candidate.start)])
            end = min([max(last, candidate.end), *(e for e in edges if e >= candidate.end)])
            text = passage[begin:end].strip()
            start = passage.index(text, begin)
            return replace(candidate, text=text, start=start, end=start + len(text))
    return candidate


def _yes_or_no(scores: Sequence[PassageScores]) -> list[Candidate]:
    # The head finds passages with an answer, but does not predict which: on Qasper's and HotpotQA's
    # development documents, yes was right in 5 of the 11 questions for which its odds were for yes.
    odds = [float(np.logaddexp(*passage.labels[2:])) - passage.labels[0] for passage in scores]
    if not odds:
        return []
    best, total = int(np.argmax(odds)), float(np.logaddexp.reduce(odds))
    return [Candidate(text, best, 0, 0, total - n) for n, text in enumerate(("yes", "no"))]


def _chosen(name: str, spans: Sequence[Candidate]) -> Candidate:
    """Returns a name of the question with the summed odds of the spans that contain it."""
    short = [c for c in spans if len(c.text.split()) <= _NAME]
    matches = [c for c in short if shared_words(c.text, name) >= _SIMILAR]
    if not matches:
        return Candidate(name, spans[0].passage, 0, 0, spans[-1].score - _ABSENT_PENALTY)
    score = float(np.logaddexp.reduce([candidate.score for candidate in matches]))
    return replace(matches[0], text=name, score=score)


def _of_pair(encoder: SpanHead, question: str, passages: Sequence[str]) -> list[Candidate]:
    """Returns the answers to a question about two things, from questions about each."""
    if asks_yes_no(question) and " same " in question:
        return by_value(encoder, question, passages)
    names = named_choices(question)
    return by_date(encoder, question, names, passages) if names else []


def _read_again(
    encoder: SpanHead, question: str, passages: Sequence[str], candidates: list[Candidate]
) -> list[Candidate]:
    """Returns the candidates of a question, the first ones in the order of both reads.

    The score of a candidate that is read again is the mean of its two scores. Questions with one
    passage or one candidate are not read again.
    """
    window, places = window_of(encoder, question, passages, candidates)
    if len(places) < 2:  # noqa: PLR2004 -- a choice
        return candidates
    span = encoder.scores([window])[0]["span"].astype(np.float64)
    ranked = [*candidates]
    for index, (start, end) in places.items():
        second = float(span[start, 0] + span[end, 1] - span[0].sum())
        ranked[index] = replace(ranked[index], score=(ranked[index].score + second) / 2)
    ranked[:_COMPARED] = sorted(ranked[:_COMPARED], key=lambda c: -c.score)
    return ranked


def window_of(
    encoder: SpanHead,
    question: str,
    passages: Sequence[str],
    candidates: Sequence[Candidate],
    room: int = _ROOM,
) -> tuple[TextPair, dict[int, tuple[int, int]]]:
    """Returns the input of a second read, and the first and last token of candidates, by index.

    The input has the sentences of the first candidates, then the sentences before and after each,
    as far as they fit into `room` tokens. Passages are in the order of their best candidates. A
    question with one passage has no candidates, since the first read had the same text.
    """
    pair = TextPair(encoder.tokenize([question])[0].ids[:QUESTION_TOKENS], [])
    if len(passages) < 2:  # noqa: PLR2004 -- see above
        return pair, {}
    compared = candidates[:_COMPARED]
    numbers = [*dict.fromkeys(candidate.passage for candidate in compared)]
    tokenized = encoder.tokenize([passages[number] for number in numbers])
    texts = dict(zip(numbers, tokenized, strict=True))
    bounds = {n: [0, *sentence_starts(passages[n]), len(passages[n])] for n in numbers}
    spans = {
        index: span
        for index, c in enumerate(compared)
        if (span := texts[c.passage].between(c.start, c.end))
    }
    window: dict[int, set[int]] = {number: set() for number in numbers}  # passage -> its tokens
    for shift in (0, -1, 1):
        for index, span in [*spans.items()]:
            number = compared[index].passage
            near = texts[number].between(*_sentences(bounds[number], compared[index], shift))
            first, last = max(near.start, span.start - _AROUND), min(near.stop, span.stop + _AROUND)
            new = {*range(first, last)} - window[number]
            if len(new) <= room:
                window[number] |= new
                room -= len(new)
            elif not shift:
                del spans[index]
    ids: list[int] = []
    position: dict[tuple[int, int], int] = {}
    for number, tokens in window.items():
        for token in sorted(tokens):
            position[number, token] = pair.first + len(ids)
            ids.append(texts[number].ids[token])
        ids += [encoder.separator] if tokens else []
    places = {}
    for index, span in spans.items():
        number = compared[index].passage
        places[index] = (position[number, span[0]], position[number, span[-1]])
    return replace(pair, text=ids[:-1]), places


def _sentences(bounds: Sequence[int], candidate: Candidate, shift: int) -> tuple[int, int]:
    """Returns the place of a candidate's sentences (`shift` 0), or of the one before or after."""
    first = bisect_right(bounds, candidate.start) - 1
    last = bisect_left(bounds, candidate.end)
    if shift < 0:
        first, last = max(first - 1, 0), first
    elif shift > 0:
        first, last = last, min(last + 1, len(bounds) - 1)
    return bounds[first], bounds[last]


_FURTHEST = 12.0  # limit of a distance, beyond which answers are equally certain
_SAME = 0.5  # least F1 of words of two candidates that are variants of one answer


@dataclass(frozen=True, slots=True)
class Signals:
    """Numbers that predict whether an answer is right."""

    score: float  # score of the best candidate
    margin: float  # distance of its score to that of the best candidate that is another answer

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> Signals:
        """Returns the signals of at least one candidate, the best first."""
        best = candidates[0]
        words = normalise(best.text).split()
        others = (c for c in candidates if token_f1(words, normalise(c.text).split()) < _SAME)
        margin = best.score - next(others, candidates[-1]).score
        return cls(best.score, min(margin, _FURTHEST))


@dataclass(frozen=True, slots=True)
class Confidence:
    """Logistic function of the signals, which the recipe `confidence` fits."""

    score: float
    margin: float
    offset: float

    def probability(self, signals: Signals) -> float:
        """Returns the probability that an answer is right: the F1 to expect, 0 to 1."""
        return logistic(self.offset + self.score * signals.score + self.margin * signals.margin)
