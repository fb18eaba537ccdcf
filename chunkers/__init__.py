"""Chunkers: they divide a document into spans."""

from chunkers.fixed_tokens import FixedTokens
from chunkers.lines import Lines
from chunkers.mention_windows import MentionWindows
from chunkers.paragraphs import Paragraphs
from chunkers.parts import Parts
from chunkers.recursive import Recursive
from chunkers.sections import Sections
from chunkers.sentences import Sentences
from chunkers.whole import Whole
from chunkers.windows import Windows

__all__ = [
    "FixedTokens",
    "Lines",
    "MentionWindows",
    "Paragraphs",
    "Parts",
    "Recursive",
    "Sections",
    "Sentences",
    "Whole",
    "Windows",
]
