"""Enrichers that summarise pages and sections, and the summaries of groups of nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias, TypeVar

from leporello.core.notes import note
from leporello.core.passages import Passage, reading_text
from leporello.core.protocols import ANSWER, Positive, Role
from leporello.core.records import Asking, Chunk, Document, Enrichment, Fit, Read, Section
from leporello.text.headings import headings

Group: TypeAlias = Sequence[Chunk]
Item = TypeVar("Item")

INSTRUCTION = "Write a short summary of these passages, with the names in them."
SUMMARY = "summary"
_LEVELS = 3  # of headings, from the outermost one


def summaries(headed: Sequence[tuple[str, Group]], instruction: str) -> Asking[list[Passage]]:
    """Yields the reads that summarise groups; returns the summaries, each after its heading.

    A group that exceeds the reader's input window is divided, and each piece is summarised. A
    summary that is empty, or not shorter than its passages, is dropped with a note.
    """
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


@dataclass(frozen=True)
class Gists:
    """Summarises a document page by page; a search finds pages by their summaries, the gists.

    ReadAgent (Lee et al., ICML 2024): pages consist of chunks, and end at headings that the
    document's format marks. A page without a gist is searched by its text.

    Attributes:
        role: Role of the reader that summarises.
        words: Maximum number of words per page; a longer chunk is one page.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    words: Positive = 400
    instruction: str = "Shorten these passages to what happens in them. Keep the names."

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read per page; returns a passage per page."""
        pages = [*self._pages(document, in_order(chunks))]
        # A page of one chunk is found by its own text as well as by a summary, without a read.
        gists = yield from summaries([("", p) for p in pages if len(p) > 1], self.instruction)
        passages = [Passage.of("page", g.sources, g.sources, g.reading) for g in gists]
        # Pages whose summary was dropped are searched by their chunks, so that no text is lost.
        summarised = {id(chunk) for gist in gists for chunk in gist.sources}
        return [*passages, *(chunk for chunk in chunks if id(chunk) not in summarised)]

    def _pages(self, document: Document, chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
        starts, page, words = {section.start for section in document.sections}, list[Chunk](), 0
        for chunk in chunks:
            length = len(chunk.text.split())
            if page and (words + length > self.words or chunk.start in starts):
                yield page
                page, words = [], 0
            page.append(chunk)
            words += length
        yield page


@dataclass(frozen=True)
class SectionTree:
    """Summarises each section, then the sections around it: the three outermost levels of headings.

    Chunks outside sections are not summarised; a document without headings has no tree, which a
    note reports. All levels are searched together, or from the top down by the retriever
    `TreeSearch`. After PageIndex and the section summaries of long-document readers.

    Attributes:
        role: Role of the reader that summarises.
        instruction: Instruction for summaries.
    """

    role: Role = ANSWER
    instruction: str = INSTRUCTION

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a round of reads per level, deepest first; returns chunks and summaries."""
        sections = sorted(headings(document), key=lambda section: section.start)
        if not sections:
            note("no headings found: the document has no tree of sections")
            return [*chunks]
        depths = sorted({section.level for section in sections})[:_LEVELS]
        passages, nodes = [*chunks], in_order(chunks)
        for depth in reversed(depths):
            outer = [section for section in sections if section.level <= depth]
            parents = yield from summaries(_by_section(nodes, outer, depth), self.instruction)
            children = {id(source) for parent in parents for source in parent.sources}
            nodes = in_order([*parents, *(node for node in nodes if id(node) not in children)])
            passages += parents
        return passages


def _by_section(
    nodes: Sequence[Chunk], sections: Sequence[Section], depth: int
) -> list[tuple[str, Group]]:
    """Returns title and nodes of each section of a depth that has two nodes or more."""
    starts = [section.start for section in sections]
    numbered = [(bisect_right(starts, node.start) - 1, node) for node in nodes]
    groups: defaultdict[int, list[Chunk]] = defaultdict(list)
    for number, pairs in groupby(numbered, key=lambda pair: pair[0]):
        if number >= 0 and sections[number].level == depth:
            groups[number] += (node for _, node in pairs)
    # The summary of a single node would only repeat it.
    return [(sections[number].title, group) for number, group in groups.items() if len(group) > 1]
