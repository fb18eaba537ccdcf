"""Chunkers: they divide a document into spans.

They may touch `core` and `text`. Begin with `fixed_tokens`; `packing` is what most of them share.
"""

from leporello.chunkers.fixed_tokens import FixedTokens
from leporello.chunkers.lines import Lines
from leporello.chunkers.mention_windows import MentionWindows
from leporello.chunkers.paragraphs import Paragraphs
from leporello.chunkers.parts import Parts
from leporello.chunkers.recursive import Recursive
from leporello.chunkers.rows import Rows
from leporello.chunkers.sections import Sections
from leporello.chunkers.sentences import Sentences
from leporello.chunkers.whole import Whole
from leporello.chunkers.windows import Windows

__all__ = [
    "FixedTokens",
    "Lines",
    "MentionWindows",
    "Paragraphs",
    "Parts",
    "Recursive",
    "Rows",
    "Sections",
    "Sentences",
    "Whole",
    "Windows",
]
