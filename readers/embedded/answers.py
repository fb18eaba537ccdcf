"""Answers to a question from what its passages say: spans, yes or no, one of two names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rank_bm25 import BM25Okapi

from leporello.readers.embedded.encoder import Encoder
from leporello.readers.embedded.spans import Candidate, PassageScores, SpanHead, summed
from leporello.text.english.questions import (
    asks_for_a_name,
    asks_for_a_reason,
    asks_yes_no,
    named_choices,
)
from leporello.text.english.scripts import LINE
from leporello.text.sentences import sentence_spans
from leporello.text.squad import normalise

_NAMED = 3  # words that a name, date or number has
_LONG = 0.3  # by how much each further word makes a span worse
_NAME = 10  # words of a span that may be a name
_ALIKE = 0.6  # share of words that two names have in common
_UNSAID = 10.0  # by how much a name is worse that no span has
_WORD = re.compile(r"\w+")
_ENDS = (".", "!", "?", '"', "”", "'", "’", ")")
_TITLE = 8  # words of a line that is a title
_BREAK = "\n\n"
_LEADING = 3  # paragraphs that a second one is sought for
_SECOND = 3  # paragraphs sought for each
_LINKS = 60  # words of a paragraph that the second is sought with


@dataclass(frozen=True, slots=True)
class Answered:
    """What passages answer to a question.

    Attributes:
        candidates: Answers, the best first.
        odds: Log odds that the passage that says most to the question says anything to it. They
            tell better than an answer's own whether there is one: less hangs on their number.
    """

    candidates: Sequence[Candidate]
    odds: float


def answer_all(
    encoder: Encoder, asked: Sequence[tuple[str, Sequence[str]]], joined: int
) -> list[Answered]:
    """Returns what is answered to each question.

    Args:
        encoder: Encoder with the heads `span` and `label`.
        asked: Questions with their passages.
        joined: Number of pairs of paragraphs that are read together besides, a question.
    """
    head = SpanHead(encoder)
    own = _read(head, asked)
    pairs = [
        joined_passages(question, passages, [-each.labels[0] for each in scores], joined)
        for (question, passages), scores in zip(asked, own, strict=True)
    ]
    texts = [[pair.text for pair in each] for each in pairs]
    together = _read(head, [(question, t) for (question, _), t in zip(asked, texts, strict=True)])
    return [
        Answered(
            _placed(answers(question, [*passages, *more], [*scores, *added]), len(passages), joins),
            max((each.odds for each in [*scores, *added]), default=-math.inf),
        )
        for (question, passages), scores, more, added, joins in zip(
            asked, own, texts, together, pairs, strict=True
        )
    ]


def _read(head: SpanHead, asked: Sequence[tuple[str, Sequence[str]]]) -> list[list[PassageScores]]:
    """Returns what each passage says to its question; all are read together."""
    scores = iter(head.read([(question, text) for question, texts in asked for text in texts]))
    return [[next(scores) for _ in texts] for _, texts in asked]


def _placed(
    found: Sequence[Candidate], count: int, joins: Sequence[JoinedPassage]
) -> list[Candidate]:
    """Returns answers with their places in the passages themselves."""
    return [c if c.passage < count else joins[c.passage - count].placed(c) for c in found]


def answers(
    question: str, passages: Sequence[str], scores: Sequence[PassageScores]
) -> list[Candidate]:
    """Returns the answers to a question, the best first.

    A question for yes or no gets these; one that names two answers to choose from gets them in
    the order that the spans favour; any other gets spans, equal ones of several passages as one.

    Args:
        question: Question in English.
        passages: Passages that were read.
        scores: Scores of each of them.
    """
    if asks_yes_no(question):
        return _yes_or_no(scores)
    if asks_for_a_name(question):
        scores = [_shorter(text, each) for text, each in zip(passages, scores, strict=True)]
    found = summed(passages, scores)
    if asks_for_a_reason(question):
        return [_sentence(passages[candidate.passage], candidate) for candidate in found]
    names = named_choices(question)
    if names and found:
        return sorted((_chosen(name, found) for name in names), key=_by_score)
    return found


def _shorter(passage: str, scores: PassageScores) -> PassageScores:
    """Returns what a passage says with long spans marked down."""
    spans = []
    for span in scores.spans:
        words = len(passage[span.start : span.end].split())
        spans.append(replace(span, score=span.score - _LONG * max(words - _NAMED, 0)))
    return replace(scores, spans=tuple(spans))


def _sentence(passage: str, candidate: Candidate) -> Candidate:
    """Returns the sentence in which an answer begins, from there on where that is no sentence."""
    for start, end in sentence_spans(passage):
        if start <= candidate.start < end:
            text = passage[start : max(end, candidate.end)].rstrip()
            return replace(candidate, text=text, start=start, end=start + len(text))
    return candidate


def _yes_or_no(scores: Sequence[PassageScores]) -> list[Candidate]:
    """Returns both answers, yes first."""
    # The head finds passages that decide, and cannot say which way: yes was right in 5 of the 11
    # questions of Qasper's and HotpotQA's development documents on which its odds were for yes.
    odds = [float(np.logaddexp(*passage.labels[2:])) - passage.labels[0] for passage in scores]
    if not odds:
        return []
    best, total = int(np.argmax(odds)), float(np.logaddexp.reduce(odds))
    return [Candidate(text, best, 0, 0, total - n) for n, text in enumerate(("yes", "no"))]


def _chosen(name: str, found: Sequence[Candidate]) -> Candidate:
    """Returns one of the names that a question gives, with what the spans say for it."""
    own = [c for c in found if len(c.text.split()) <= _NAME and _shared(c.text, name) >= _ALIKE]
    if not own:
        return Candidate(name, found[0].passage, 0, 0, found[-1].score - _UNSAID)
    score = float(np.logaddexp.reduce([candidate.score for candidate in own]))
    return replace(own[0], text=name, score=score)


def _shared(one: str, other: str) -> float:
    """Returns how much of the shorter text's words the longer has."""
    words, others = set(normalise(one).split()), set(normalise(other).split())
    return len(words & others) / max(min(len(words), len(others)), 1)


def _by_score(candidate: Candidate) -> float:
    return -candidate.score


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """A paragraph of a passage.

    Attributes:
        passage: Index of the passage.
        start: First character in the passage.
        text: Text, a title in front of it included.
    """

    passage: int
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class JoinedPassage:
    """Two paragraphs that are read together.

    Attributes:
        first: Paragraph that stands first in the document.
        second: The other one.
    """

    first: _Paragraph
    second: _Paragraph

    @property
    def text(self) -> str:
        """What is read."""
        return f"{self.first.text}{_BREAK}{self.second.text}"

    def placed(self, candidate: Candidate) -> Candidate:
        """Returns an answer that was found in the text with its place in the passage it is from."""
        shift = len(self.first.text) + len(_BREAK)
        part, begin = (self.second, shift) if candidate.start >= shift else (self.first, 0)
        start = part.start + candidate.start - begin
        end = min(candidate.end - begin, len(part.text)) + part.start
        return replace(candidate, passage=part.passage, start=start, end=end)


def joined_passages(
    question: str, passages: Sequence[str], odds: Sequence[float], count: int
) -> list[JoinedPassage]:
    """Returns pairs of paragraphs to read together, the most promising first.

    The first of a pair is one that the question's words or the reader's odds speak for; the
    second shares rare words with both.

    Args:
        question: Question.
        passages: Passages that were read.
        odds: Log odds that each of them answers.
        count: Number of pairs at most.
    """
    found = [p for index, text in enumerate(passages) for p in _paragraphs(index, text)]
    if len(found) < 2:  # noqa: PLR2004 -- two make a pair
        return []
    words = [_WORD.findall(paragraph.text.lower()) or [""] for paragraph in found]
    index = BM25Okapi(words)
    asked = _WORD.findall(question.lower())
    leading = [
        float(score) + odds[paragraph.passage]
        for score, paragraph in zip(index.get_scores(asked), found, strict=True)
    ]
    pairs: dict[tuple[int, int], None] = {}
    for one in _best(leading, _LEADING):
        links = [word for word in dict.fromkeys(words[one]) if word not in asked][:_LINKS]
        scores = index.get_scores([*asked, *links]).tolist()
        scores[one] = -math.inf
        pairs |= {(min(one, other), max(one, other)): None for other in _best(scores, _SECOND)}
    return [JoinedPassage(found[a], found[b]) for a, b in list(pairs)[:count] if a != b]


def _paragraphs(index: int, passage: str) -> Iterator[_Paragraph]:
    """Yields the paragraphs of a passage, a title with the one that follows it."""
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
