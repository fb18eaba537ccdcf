"""What enrichers that summarise share: reads of groups of nodes, and passages of what came back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

from leporello.core.notes import note
from leporello.core.passages import Passage, reading_text
from leporello.core.records import Asking, Chunk, Fit, Read

Group: TypeAlias = Sequence[Chunk]
One = TypeVar("One")

INSTRUCTION = "Write a short summary of these passages, with the names in them."
SUMMARY = "summary"


def summaries(
    groups: Sequence[Group],
    instruction: str,
    headings: Sequence[str] = (),
) -> Asking[list[Passage]]:
    """Yields what the groups' summaries take to read; returns them, with their headings first.

    A group that does not fit the reader's window is summarised in several. A summary that is empty,
    or no shorter than what it stands for, is dropped with a note.

    Args:
        groups: Chunks and passages that are summarised together.
        instruction: Instruction for the reader.
        headings: Texts before the groups, empty for none; one a group, if any.
    """
    named = [*zip(headings or [""] * len(groups), groups, strict=True)]
    fitting = yield from _fitting(named, instruction)
    outputs = yield [_read(heading, group, instruction) for heading, group in fitting]
    made: list[Passage] = []
    for (heading, group), output in zip(fitting, outputs, strict=True):
        summary = output.text.strip()
        if not summary or len(summary) >= sum(len(reading_text(one)) for one in group):
            note("a summary was empty, or no shorter than its passages: it was dropped")
            continue
        made.append(Passage.of(SUMMARY, [*filter(None, [heading]), summary], group))
    return made


def _fitting(
    named: Sequence[tuple[str, Group]], instruction: str
) -> Asking[list[tuple[str, Group]]]:
    """Yields whether groups fit the reader; returns them, those cut that do not, in their order."""
    for _ in range(max((len(group) for _, group in named), default=0)):
        fits = yield [Fit(_read(heading, group, instruction)) for heading, group in named]
        pieces = [
            (heading, piece)
            for (heading, group), n in zip(named, fits, strict=True)
            for piece in cut(group, max(n - bool(heading), 1))
        ]
        if len(pieces) == len(named):
            break
        named = pieces
    return [*named]


def in_order(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Returns chunks and passages by where they stand."""
    return sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))


def cut(group: Sequence[One], size: int) -> list[Sequence[One]]:
    """Returns a sequence in runs of even length, of `size` at most."""
    runs = -(-len(group) // size)
    even = -(-len(group) // max(runs, 1))
    return [group[first : first + even] for first in range(0, len(group), max(even, 1))]


def _read(heading: str, group: Group, instruction: str) -> Read:
    document = group[0].document
    return Read((*filter(None, [heading]), *group), instruction=instruction, title=document.title)
