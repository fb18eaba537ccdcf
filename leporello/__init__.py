"""Leporello answers from documents far longer than a model can read.

It divides a document, selects what matters, lets a short-context reader solve each piece, and
recombines the outputs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from leporello.core import __version__
from leporello.core.environment import signals  # noqa: F401 -- first: a command's begin here
from leporello.core.passages import Passage
from leporello.core.records import (
    Chunk,
    Coverage,
    Document,
    Example,
    Failure,
    Fit,
    Generates,
    Hit,
    Output,
    Prediction,
    Read,
    Search,
    Section,
    Span,
)

if TYPE_CHECKING:
    from leporello.api import Answer, Comparison, Pipeline, Run, Session, ask, compare, run

__all__ = [
    "Answer",
    "Chunk",
    "Comparison",
    "Coverage",
    "Document",
    "Example",
    "Failure",
    "Fit",
    "Generates",
    "Hit",
    "Output",
    "Passage",
    "Pipeline",
    "Prediction",
    "Read",
    "Run",
    "Search",
    "Section",
    "Session",
    "Span",
    "__version__",
    "ask",
    "compare",
    "run",
]

if not TYPE_CHECKING:  # the import of what runs takes a second

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # By its name: stages import from here, and what they import is part of the cache's keys.
        return getattr(import_module("leporello.api"), name)
