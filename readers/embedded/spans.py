"""Spans of passages that may answer a question, with comparable scores."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leporello.readers.embedded.encoder import Encoder, TextPair, TokenizedText
from leporello.text.english.terms import LINE, is_script, label, nearest
from leporello.text.squad import normalise

QUESTION_TOKENS = 64  # of a question are read, as in training
_STRIDE = 64  # tokens that two segments of a long passage share
_WITHIN = frozenset({"Mn", "Mc", "Me", "Cf"})  # Unicode's marks and invisible characters
_BOUNDS = 12  # starts and ends that are paired
_LONGEST = 40  # maximum tokens of a span
_SPANS = 8  # spans of a passage
_CELL = re.compile(r"(?<=\S)[^\S\n]*\t|\n[^\S\n]*(?=\n)")  # end of a table cell or of a paragraph
_SPEAKER = 5  # maximum words of a line in capitals that names a speaker
_HEADING = 10  # maximum words of a heading
_STOPS = (".", "?", "!", ":", ";", ",")
_DIRECTION = re.compile(r"\([^()\n]{1,60}\)$")  # after a speaker's name: `(aside)`
_SPOKEN = re.compile(r"[^\S\n]*+[A-Z][A-Z'’ -]{2,30}+\.(?=\s(?![A-Z]{2}))")  # `HAMLET. To be`


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer with its source."""

    text: str
    passage: int  # index of its passage
    start: int  # first character in the passage; equal to `end` if the passage lacks the text
    end: int
    # Comparable between passages and questions: about the log odds of a right answer. In
    # `PassageScores`, the logit.
    score: float


@dataclass(frozen=True, slots=True)
class PassageScores:
    """Scores of one passage for a question."""

    spans: tuple[Candidate, ...]  # the best first
    null: float  # logit of "no answer", on the scale of the spans' scores
    labels: tuple[float, float, float, float]  # log-probabilities of no answer, a span, yes, no

    @property
    def odds(self) -> float:
        """Log odds that the passage answers the question."""
        return float(np.logaddexp.reduce(self.labels[1:])) - self.labels[0]


@dataclass(frozen=True, slots=True)
class Decision:
    """Probabilities of options or labels, and the text in the passages that decides, if any."""

    probabilities: tuple[float, ...]
    place: Candidate | None


def softmax(odds: NDArray[np.float64]) -> tuple[float, ...]:
    """Returns the probabilities that are proportional to the exponentials of numbers."""
    return tuple(np.exp(odds - np.logaddexp.reduce(odds)).tolist())


_NOTHING = PassageScores((), 0.0, (0.0, -math.inf, -math.inf, -math.inf))


class SpanHead(Encoder):
    """An encoder with the heads `span` and `label`, which reads questions and passages."""

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[PassageScores]:
        """Returns the scores of (question, passage) pairs; questions are cut to 64 tokens."""
        texts = {text: i for i, text in enumerate(dict.fromkeys(t for pair in pairs for t in pair))}
        tokenized = self.tokenize(list(texts))
        windows: list[TextPair] = []
        places: list[tuple[int, int]] = []  # pair, and first token
        for number, (question, passage) in enumerate(pairs):
            question_ids = tokenized[texts[question]].ids[:QUESTION_TOKENS]
            ids = tokenized[texts[passage]].ids
            room = self.longest - len(question_ids) - 3
            for first in range(0, max(len(ids) - _STRIDE, min(len(ids), 1)), room - _STRIDE):
                windows.append(TextPair(question_ids, ids[first : first + room]))
                places.append((number, first))
        outputs = self.scores(windows)
        edges = {passage: edges_of(passage) for _, passage in pairs}
        segments: list[list[PassageScores]] = [[] for _ in pairs]
        for window, (number, first), scores in zip(windows, places, outputs, strict=True):
            passage = pairs[number][1]
            tokens = tokenized[texts[passage]]
            segment = TokenizedText(tokens.ids[first:], tokens.offsets[first:])
            segments[number].append(_scores(window, segment, scores, passage, edges[passage]))
        return [*map(_merged, segments)]

    def read_nearest(
        self, question: str, texts: Sequence[str], count: int
    ) -> dict[int, PassageScores]:
        """Returns the scores of the `count` texts nearest to a question, by index."""
        near = nearest(question, texts, count)
        return dict(zip(near, self.read([(question, texts[i]) for i in near]), strict=True))


def _scores(
    window: TextPair,
    tokens: TokenizedText,
    scores: dict[str, NDArray[np.float32]],
    passage: str,
    edges: Sequence[int],
) -> PassageScores:
    span = scores["span"].astype(np.float64)
    inside = span[window.first : -1]
    labels = scores["label"].astype(np.float64)
    labels = labels - np.logaddexp.reduce(labels)
    spans: dict[tuple[int, int], Candidate] = {}
    starts = [start for start, _ in tokens.offsets[: len(inside)]]
    units = [bisect_right(edges, start) for start in starts] if edges else []
    for first, last, score in _pairs(inside, units):
        start, end = _whole_words(passage, tokens.offsets[first][0], tokens.offsets[last][1])
        spans.setdefault((start, end), Candidate(passage[start:end], 0, start, end, score))
    best = tuple(list(spans.values())[:_SPANS])
    return PassageScores(best, float(span[0].sum()), tuple(labels.tolist()))


def _pairs(inside: NDArray[np.float64], units: Sequence[int]) -> list[tuple[int, int, float]]:
    """Returns starts and ends in the same unit of the text with their scores, best first."""
    starts = np.argsort(-inside[:, 0], kind="stable")[:_BOUNDS]
    ends = np.argsort(-inside[:, 1], kind="stable")[:_BOUNDS]
    pairs = [
        (int(start), int(end), float(inside[start, 0] + inside[end, 1]))
        for start in starts
        for end in ends
        if start <= end < start + _LONGEST
        if not units or units[start] == units[end]
    ]
    if not pairs and len(starts):  # the best ends are before every start
        best = int(starts[0])
        pairs = [(best, best, float(inside[best].sum()))]
    return sorted(pairs, key=lambda item: -item[2])


def summed(scores: Sequence[PassageScores]) -> list[Candidate]:
    """Returns the spans of all passages, the best first; the odds of equal answers are summed."""
    best: dict[str, Candidate] = {}
    total: dict[str, float] = {}
    for number, passage in enumerate(scores):
        keys: set[str] = set()
        for span in passage.spans:
            key = normalise(span.text)
            if not key or key in keys:
                continue
            keys.add(key)
            score = span.score - passage.null
            total[key] = float(np.logaddexp(total.get(key, -np.inf), score))
            if key not in best or best[key].score < score:
                best[key] = replace(span, passage=number, score=score)
    candidates = [replace(candidate, score=total[key]) for key, candidate in best.items()]
    return sorted(candidates, key=lambda candidate: -candidate.score)


def edges_of(passage: str) -> list[int]:
    """Returns the offsets of ends of cells, rows, paragraphs and turns, which no answer crosses."""
    edges = {match.end() for match in _CELL.finditer(passage)}
    lines = list(LINE.finditer(passage))
    texts = [line.group().strip() for line in lines]
    capitals = [_DIRECTION.sub("", text).isupper() for text in texts]
    script = is_script([passage])
    for number, line in enumerate(lines):
        # Among other lines in capitals, a short one is part of a paragraph.
        alone = capitals[number] and capitals[max(number - 1, 0) : number + 2].count(True) == 1
        text = texts[number]
        if _is_heading(
            *(texts[n] if 0 <= n < len(texts) else "." for n in range(number - 1, number + 2))
        ):
            edges.add(line.end())
        if "\t" in text or (alone and len(text.split()) <= _SPEAKER):
            edges |= {line.start(), line.end()}
        speaker = label(passage, *line.span())
        if speaker and (script or speaker["name"].isupper()):
            edges |= {line.start(), speaker.end()}
        elif spoken := _SPOKEN.match(passage, line.start()):
            edges |= {line.start(), spoken.end()}
    return sorted(edges)


def _is_heading(before: str, line: str, after: str) -> bool:
    """Returns whether a line is a heading: short, after a sentence, and above a longer line."""
    return (
        2 * len(line) <= len(after)
        and len(line.split()) <= _HEADING
        and not after[0].islower()
        and not line.endswith(_STOPS)
        and before.endswith((*_STOPS, *"\"'”’)]"))
    )


def _whole_words(passage: str, start: int, end: int) -> tuple[int, int]:
    """Returns a span extended to complete words, without leading white space of tokens."""
    while start < end and passage[start].isspace():
        start += 1
    while start > 0 and _in_word(passage[start - 1]) and _in_word(passage[start]):
        start -= 1
    while end < len(passage) and _in_word(passage[end - 1]) and _in_word(passage[end]):
        end += 1
    while start < end and unicodedata.category(passage[start]) == "Cf":
        start += 1
    while start < end and unicodedata.category(passage[end - 1]) == "Cf":
        end -= 1
    return start, end


def _in_word(character: str) -> bool:
    # Tokens leave out combining accents and soft hyphens, which are parts of a word.
    return character.isalnum() or unicodedata.category(character) in _WITHIN


def _merged(parts: Sequence[PassageScores]) -> PassageScores:
    if not parts:
        return _NOTHING
    if len(parts) == 1:
        return parts[0]
    best: dict[tuple[int, int], Candidate] = {}
    for span in sorted((s for part in parts for s in part.spans), key=lambda s: -s.score):
        best.setdefault((span.start, span.end), span)
    leading = min(parts, key=lambda part: part.labels[0])
    return PassageScores(
        tuple(list(best.values())[:_SPANS]), min(part.null for part in parts), leading.labels
    )
