"""Summaries of groups of nodes, for the enrichers that summarise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

from leporello.core.notes import note
from leporello.core.passages import Passage, reading_text
from leporello.core.records import Asking, Chunk, Fit, Read

Group: TypeAlias = Sequence[Chunk]
Item = TypeVar("Item")

INSTRUCTION = "Write a short summary of these passages, with the names in them."
SUMMARY = "summary"


def summaries(
    groups: Sequence[Group],
    instruction: str,
    headings: Sequence[str] = (),
) -> Asking[list[Passage]]:
    """Yields the reads that summarise groups; returns the summaries, each after its heading.

    A group that exceeds the reader's input window is divided, and each piece is summarised. A
    summary that is empty, or not shorter than its passages, is dropped with a note.

    Args:
        groups: Chunks and passages to summarise together.
        instruction: Instruction for the reader.
        headings: A heading for each group, which may be empty; no items if no group has one.
    """
    headed = [*zip(headings or [""] * len(groups), groups, strict=True)]
    fitting = yield from _fitting(headed, instruction)
    outputs = yield [_read(heading, group, instruction) for heading, group in fitting]
    passages: list[Passage] = []
    for (heading, group), output in zip(fitting, outputs, strict=True):
        summary = output.text.strip()
        # A longer text in place of the passages would fill the window that it is meant to save.
        if not summary or len(summary) >= sum(len(reading_text(node)) for node in group):
            note("a summary was empty, or not shorter than its passages: it was dropped")
            continue
        passages.append(Passage.of(SUMMARY, [*filter(None, [heading]), summary], group))
    return passages


def _fitting(
    headed: Sequence[tuple[str, Group]], instruction: str
) -> Asking[list[tuple[str, Group]]]:
    """Yields the groups until all fit the reader; returns them, the long ones divided, in order."""
    # Bounded: each round divides a group at least once, so this suffices even for single chunks.
    for _ in range(max((len(group) for _, group in headed), default=0)):
        fits = yield [Fit(_read(heading, group, instruction)) for heading, group in headed]
        pieces = [
            (heading, piece)
            for (heading, group), n in zip(headed, fits, strict=True)
            for piece in cut(group, max(n - bool(heading), 1))
        ]
        if len(pieces) == len(headed):
            break
        headed = pieces
    return [*headed]


def in_order(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Returns chunks and passages in document order."""
    return sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))


def cut(group: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Returns a sequence in runs of even length, at most `size`."""
    runs = -(-len(group) // size)
    # Even lengths: full runs would leave a last one with a single chunk, whose summary adds little.
    length = -(-len(group) // max(runs, 1))
    return [group[first : first + length] for first in range(0, len(group), max(length, 1))]


def _read(heading: str, group: Group, instruction: str) -> Read:
    document = group[0].document
    return Read((*filter(None, [heading]), *group), instruction=instruction, title=document.title)
