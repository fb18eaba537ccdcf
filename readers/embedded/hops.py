"""A second hop: paragraphs of two passages that answer together what neither answers alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rank_bm25 import BM25Okapi

from leporello.readers.embedded.spans import Candidate

_WORD = re.compile(r"\w+")
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_ENDS = (".", "!", "?", '"', "”", "'", "’", ")")
_TITLE = 8  # words of a line that is a title
_BREAK = "\n\n"
_LEADING = 3  # paragraphs that a second one is sought for
_SECOND = 3  # paragraphs sought for each
_LINKS = 60  # words of a paragraph that the second is sought with


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
    for line in _LINE.finditer(passage):
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
