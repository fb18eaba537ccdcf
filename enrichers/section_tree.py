"""Tree of summaries that follows the document's outline."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from leporello.core.notes import note
from leporello.core.protocols import ANSWER, Positive, Role
from leporello.core.records import Chunk, Document, Enrichment, Section
from leporello.enrichers.summarising import INSTRUCTION, in_order, summaries
from leporello.text.headings import headings


@dataclass(frozen=True)
class SectionTree:
    """Summarises each section, then the sections around it, up to the outermost headings.

    Chunks outside sections are not summarised; a document without headings has no tree, which a
    note reports. All levels are searched together, or from the top down by the retriever
    `TreeSearch`. After PageIndex and the section summaries of long-document readers.

    Attributes:
        role: Role of the reader that summarises.
        levels: Number of levels of headings, from the outermost one.
        instruction: Instruction for summaries.
    """

    role: Role = ANSWER
    levels: Positive = 3
    instruction: str = INSTRUCTION

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a round of reads per level, deepest first; returns chunks and summaries."""
        sections = sorted(headings(document), key=lambda section: section.start)
        if not sections:
            note("no headings found: the document has no tree of sections")
            return [*chunks]
        depths = sorted({section.level for section in sections})[: self.levels]
        passages, nodes = [*chunks], in_order(chunks)
        for depth in reversed(depths):
            outer = [section for section in sections if section.level <= depth]
            groups = _by_section(nodes, outer, depth)
            titles = [outer[number].title for number in groups]
            parents = yield from summaries([*groups.values()], self.instruction, titles)
            children = {id(source) for parent in parents for source in parent.sources}
            nodes = in_order([*parents, *(node for node in nodes if id(node) not in children)])
            passages += parents
        return passages


def _by_section(
    nodes: Sequence[Chunk], sections: Sequence[Section], depth: int
) -> dict[int, list[Chunk]]:
    """Returns the nodes of each section of a depth by its number, if there are two or more."""
    starts = [section.start for section in sections]
    numbered = [(bisect_right(starts, node.start) - 1, node) for node in nodes]
    groups: defaultdict[int, list[Chunk]] = defaultdict(list)
    for number, pairs in groupby(numbered, key=lambda pair: pair[0]):
        if number >= 0 and sections[number].level == depth:
            groups[number] += (node for _, node in pairs)
    # A summary of a single node would repeat it, and cost a read.
    return {number: group for number, group in groups.items() if len(group) > 1}
