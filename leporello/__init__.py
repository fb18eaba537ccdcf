"""Leporello answers questions about documents far longer than a model can read.

It divides a document into chunks, retrieves relevant chunks, lets a reader with a short input
window answer from them, and combines the outputs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from leporello.core import __version__
from leporello.core.environment import process  # noqa: F401 -- installs handlers for commands
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
    "Answer", "Chunk", "Comparison", "Coverage", "Document", "Example", "Failure", "Fit",
    "Generates", "Hit", "Output", "Passage", "Pipeline", "Prediction", "Read", "Run", "Search",
    "Section", "Session", "Span", "__version__", "ask", "compare", "run",
]  # fmt: skip

if not TYPE_CHECKING:  # lazy, since importing `leporello.api` takes a second

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # By name, not by an import statement: stages import this module, and the imports of a
        # stage are part of its cache keys.
        return getattr(import_module("leporello.api"), name)
