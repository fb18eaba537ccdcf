"""Selects chunks by their mentions of a character: MuLD's rule for archetypes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from leporello.core.notes import note
from leporello.core.records import Chunk, Hit
from leporello.retrievers.index.postings import in_order
from leporello.text.mentions import mentions_in

Pick: TypeAlias = Literal["first", "last", "densest"]


@dataclass(frozen=True)
class Mentions:
    """Returns the chunks with the first, the last and the most mentions of the question, a name.

    MuLD (section 4) concatenates the three: `Stuff` with `order: document`. A chunk that meets
    several of the rules is returned once. Its score is the number of mentions that begin in it; if
    several chunks have the most mentions, the first counts. docs/decisions/0014-mentions.md defines
    mentions.

    Attributes:
        pick: Rules: any of the three.
    """

    pick: tuple[Pick, ...] = ("first", "last", "densest")

    def __post_init__(self) -> None:
        if not self.pick:
            raise ValueError("pick is empty: no chunk would ever be returned")

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns at most three chunks for each name, those with more mentions first.

        A name without mentions gets no chunks, and a note.
        """
        return [self._select(question, chunks) for question in questions]

    def _select(self, name: str, chunks: Sequence[Chunk]) -> list[Hit]:
        ordered = sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))
        # By number, not share, of mentions: MuLD's chunks have the same length (decision 14).
        hits = [Hit(c, float(n)) for c, n in zip(ordered, _counts(name, ordered), strict=True) if n]
        if not hits:
            if chunks:  # without chunks, the chunker has noted the reason
                # Chunks without the name would be taken for evidence of a character (decision 14).
                note("no chunk mentions the name: nothing is selected")
            return []
        by_rule = {
            "first": hits[0],
            "last": hits[-1],
            "densest": max(hits, key=lambda hit: hit.score),  # the first if several are equal
        }
        return in_order({by_rule[rule].chunk.span: by_rule[rule] for rule in self.pick}.values())


def _counts(name: str, chunks: Sequence[Chunk]) -> list[int]:
    """Returns the number of mentions that begin in each chunk."""
    if not chunks:
        return []
    # By the start only, so that a mention across a border counts once.
    starts = [mention.start for mention in mentions_in(chunks[0].document, name)]
    return [bisect_left(starts, chunk.end) - bisect_left(starts, chunk.start) for chunk in chunks]
