"""Answers to questions from passages: spans, yes or no, one of two names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rank_bm25 import BM25Okapi

from leporello.readers.embedded.encoder import Encoder
from leporello.readers.embedded.spans import (
    Candidate,
    PassageScores,
    SpanHead,
    edges_of,
    summed,
)
from leporello.text.english.questions import (
    asks_for_a_name,
    asks_for_a_reason,
    asks_yes_no,
    named_choices,
)
from leporello.text.english.terms import LINE
from leporello.text.folding import folded
from leporello.text.sentences import sentence_spans
from leporello.text.squad import normalise
from leporello.text.tokens import terms

_SHORT = 3  # usual words of a name, date or number
_WORD_PENALTY = 0.3  # subtracted from the score of a span for each further word
_NAME = 10  # maximum words of a span that may be a name
_SIMILAR = 0.6  # least share of words that two spellings of a name have in common
_ABSENT_PENALTY = 10.0  # subtracted from the score of a name that no span contains
_ENDS = (".", "!", "?", '"', "”", "'", "’", ")")
_TITLE = 8  # maximum words of a line that is a title
_BREAK = "\n\n"
_LEADING = 3  # paragraphs that are joined with a second one
_SECOND = 3  # second paragraphs for each of them
_LINKS = 60  # words of a paragraph in the search for the second one


@dataclass(frozen=True, slots=True)
class Answered:
    """Answers to a question, the best first, and each passage's log odds that it answers."""

    candidates: Sequence[Candidate]
    odds: Sequence[float]


def answer_all(
    encoder: Encoder, questions: Sequence[tuple[str, Sequence[str]]], joined: int
) -> list[Answered]:
    """Returns the answers to each question."""
    head = SpanHead(encoder)
    single = _read(head, questions)
    pairs = [
        joined_passages(question, passages, [-passage.labels[0] for passage in scores], joined)
        for (question, passages), scores in zip(questions, single, strict=True)
    ]
    texts = [[pair.text for pair in joins] for joins in pairs]
    double = _read(head, [(q, joins) for (q, _), joins in zip(questions, texts, strict=True)])
    return [
        Answered(
            _placed(answers(question, [*passages, *more], [*scores, *added]), len(passages), joins),
            [passage.odds for passage in [*scores, *added]],
        )
        for (question, passages), scores, more, added, joins in zip(
            questions, single, texts, double, pairs, strict=True
        )
    ]


def _read(
    head: SpanHead, questions: Sequence[tuple[str, Sequence[str]]]
) -> list[list[PassageScores]]:
    """Returns the scores of each passage for its question; all are read together."""
    scores = iter(head.read([(question, text) for question, texts in questions for text in texts]))
    return [[next(scores) for _ in texts] for _, texts in questions]


def _placed(
    candidates: Sequence[Candidate], count: int, joins: Sequence[JoinedPassage]
) -> list[Candidate]:
    """Returns answers with their offsets in the original passages."""
    return [c if c.passage < count else joins[c.passage - count].placed(c) for c in candidates]


def answers(
    question: str, passages: Sequence[str], scores: Sequence[PassageScores]
) -> list[Candidate]:
    """Returns the answers to a question, the best first.

    The answers to a yes/no question are yes and no; those to a question with two names are the
    names, ranked by the spans; those to other questions are spans, with equal ones combined.
    """
    if asks_yes_no(question):
        return _yes_or_no(scores)
    if asks_for_a_name(question):
        scores = [_prefer_short(*pair) for pair in zip(passages, scores, strict=True)]
    candidates = summed(passages, scores)
    if asks_for_a_reason(question):
        return [_sentence(passages[candidate.passage], candidate) for candidate in candidates]
    names = named_choices(question)
    if names and candidates:
        return sorted((_chosen(n, candidates) for n in names), key=lambda c: -c.score)
    return candidates


def _prefer_short(passage: str, scores: PassageScores) -> PassageScores:
    """Returns the scores of a passage with a penalty for long spans."""
    spans = []
    for span in scores.spans:
        words = len(passage[span.start : span.end].split())
        spans.append(replace(span, score=span.score - _WORD_PENALTY * max(words - _SHORT, 0)))
    return replace(scores, spans=tuple(spans))


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
    """Returns both answers, yes first."""
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
    matches = [c for c in short if _shared(c.text, name) >= _SIMILAR]
    if not matches:
        return Candidate(name, spans[0].passage, 0, 0, spans[-1].score - _ABSENT_PENALTY)
    score = float(np.logaddexp.reduce([candidate.score for candidate in matches]))
    return replace(matches[0], text=name, score=score)


def _shared(left: str, right: str) -> float:
    """Returns the share of the shorter text's words that the longer text has."""
    words, others = (set(normalise(folded(text)).split()) for text in (left, right))
    return len(words & others) / max(min(len(words), len(others)), 1)


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """A paragraph of a passage."""

    passage: int
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class JoinedPassage:
    """Two paragraphs that are read together."""

    first: _Paragraph
    second: _Paragraph

    @property
    def text(self) -> str:
        """Text of both paragraphs."""
        return f"{self.first.text}{_BREAK}{self.second.text}"

    def placed(self, candidate: Candidate) -> Candidate:
        """Returns an answer in the joined text with its offsets in the original passage."""
        shift = len(self.first.text) + len(_BREAK)
        part, begin = (self.second, shift) if candidate.start >= shift else (self.first, 0)
        start = part.start + candidate.start - begin
        end = min(candidate.end - begin, len(part.text)) + part.start
        return replace(candidate, passage=part.passage, start=start, end=end)


def joined_passages(
    question: str, passages: Sequence[str], odds: Sequence[float], count: int
) -> list[JoinedPassage]:
    """Returns pairs of paragraphs to read together, the most promising first.

    The first of a pair has a high score by BM25 and the reader's odds; the second shares rare words
    with the question and the first.
    """
    paragraphs = [p for index, text in enumerate(passages) for p in _paragraphs(index, text)]
    if len(paragraphs) < 2:  # noqa: PLR2004 -- a pair
        return []
    words = [terms(paragraph.text) or [""] for paragraph in paragraphs]
    index = BM25Okapi(words)
    query = terms(question)
    leading = [
        float(score) + odds[paragraph.passage]
        for score, paragraph in zip(index.get_scores(query), paragraphs, strict=True)
    ]
    pairs: dict[tuple[int, int], None] = {}
    for first in _best(leading, _LEADING):
        links = [word for word in dict.fromkeys(words[first]) if word not in query][:_LINKS]
        scores = index.get_scores([*query, *links]).tolist()
        scores[first] = -math.inf
        pairs |= {(min(first, n), max(first, n)): None for n in _best(scores, _SECOND)}
    return [JoinedPassage(paragraphs[a], paragraphs[b]) for a, b in list(pairs)[:count] if a != b]


def _paragraphs(index: int, passage: str) -> Iterator[_Paragraph]:
    """Yields the paragraphs of a passage; a title belongs to the paragraph after it."""
    title: int | None = None
    for line in LINE.finditer(passage):
        text = line.group().strip()
        if len(text.split()) <= _TITLE and not text.endswith(_ENDS):
            title = line.start() if title is None else title
        else:
            start = line.start() if title is None else title
            yield _Paragraph(index, start, passage[start : line.end()])
            title = None
    if title is not None:
        yield _Paragraph(index, title, passage[title:])


def _best(scores: Sequence[float], count: int) -> list[int]:
    return sorted(range(len(scores)), key=lambda place: -scores[place])[:count]
