"""Enrichers: they make passages of a document's chunks, which are searched in their place.

They may touch `core`, `models` and `text`. Begin with `parent_chunks`, the simplest; `summarising`
is what those share that ask for summaries, `contextual_chunks` adds the place of a chunk.
"""

from leporello.enrichers.contextual_chunks import ContextualChunks
from leporello.enrichers.gists import Gists
from leporello.enrichers.parent_chunks import ParentChunks
from leporello.enrichers.propositions import Propositions
from leporello.enrichers.questions import Questions
from leporello.enrichers.section_tree import SectionTree
from leporello.enrichers.summary_tree import SummaryTree

__all__ = [
    "ContextualChunks",
    "Gists",
    "ParentChunks",
    "Propositions",
    "Questions",
    "SectionTree",
    "SummaryTree",
]
