"""Chunkers: they divide a document into spans."""

from chunkers.fixed_tokens import FixedTokens
from chunkers.lines import Lines
from chunkers.paragraphs import Paragraphs
from chunkers.recursive import Recursive
from chunkers.sentences import Sentences
from chunkers.whole import Whole

__all__ = ["FixedTokens", "Lines", "Paragraphs", "Recursive", "Sentences", "Whole"]
