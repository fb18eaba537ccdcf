"""Documents of several authors, segments of their texts one behind another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random

from leporello.core.records import Document, Example, Span

Works = Mapping[str, Sequence[Sequence[str]]]
"""Texts by author, each a sequence of paragraphs."""

_AUTHORS = (2, 2, 3, 4)
_CHARACTERS = 30_000, 50_000


def glued(works: Works, count: int, seed: int) -> list[Example]:
    """Returns documents of two to four authors, whose gold is the author of each paragraph.

    An author who comes again goes on where the segment before ended.

    Args:
        works: Texts by author; at least four authors.
        count: Number of documents.
        seed: Seed of what is drawn.
    """
    chance = Random(seed)
    return [_document(works, f"d{seed}-{number}", chance) for number in range(count)]


def _document(works: Works, name: str, chance: Random) -> Example:
    count, total = chance.choice(_AUTHORS), chance.randint(*_CHARACTERS)
    plan = _plan(chance.sample(sorted(works), count), chance)
    shares = [chance.uniform(0.5, 1.5) for _ in plan]
    places: dict[str, tuple[Sequence[str], int]] = {}
    paragraphs: list[str] = []
    authors: list[str] = []
    for author, share in zip(plan, shares, strict=True):
        if author not in places:
            work = chance.choice(works[author])
            places[author] = work, chance.randint(0, len(work) // 2)
        work, place = places[author]
        left = total * share / sum(shares)
        while left > 0 and place < len(work):
            left -= len(work[place])
            paragraphs.append(work[place])
            authors.append(author)
            place += 1
        places[author] = work, place
    numbers: dict[str, int] = {}
    gold = [numbers.setdefault(author, len(numbers) + 1) for author in authors]
    return Example(name, _of_parts(name, paragraphs), references=(json.dumps(gold),))


def _plan(authors: Sequence[str], chance: Random) -> list[str]:
    """Returns the authors of segments: each once at least, none twice in a row."""
    plan = [*authors, *(chance.choice(authors) for _ in range(chance.randint(0, 2)))]
    for _ in range(50):
        chance.shuffle(plan)
        if all(one != other for one, other in pairwise(plan)):
            return plan
    return [*authors]


def _of_parts(name: str, paragraphs: Sequence[str]) -> Document:
    spans, end = [], 0
    for paragraph in paragraphs:
        spans.append(Span(end, end + len(paragraph)))
        end += len(paragraph) + 1
    return Document(name, "\n".join(paragraphs), parts=tuple(spans))
