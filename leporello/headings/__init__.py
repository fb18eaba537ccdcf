"""Headings: what they are, where their sections end, what they are called."""

from leporello.headings.found import headings, is_bare
from leporello.headings.labels import Label, label_of, name_of

__all__ = ["Label", "headings", "is_bare", "label_of", "name_of"]
