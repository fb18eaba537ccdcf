"""Tests all chunkers with the kit for authors of plug-ins."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from leporello import chunkers
from leporello.testing import ChunkerContract

MAKERS: Mapping[str, Callable[[], Any]] = {
    "FixedTokens": lambda: chunkers.FixedTokens(30, 5),
    "Lines": lambda: chunkers.Lines(30),
    "MentionWindows": lambda: chunkers.MentionWindows(30),
    "Paragraphs": lambda: chunkers.Paragraphs(30),
    "Parts": chunkers.Parts,
    "Recursive": lambda: chunkers.Recursive(30, 5),
    "Rows": lambda: chunkers.Rows(30),
    "Sections": lambda: chunkers.Sections(30, split_long=True),
    "Sentences": lambda: chunkers.Sentences(30, 5),
    "Whole": chunkers.Whole,
    "Windows": lambda: chunkers.Windows(30, 10),
}


class TestChunkers(ChunkerContract):
    """Chunkers with small sizes."""

    @pytest.fixture(params=chunkers.__all__)
    def maker(self, request: pytest.FixtureRequest) -> Callable[[], Any]:
        return MAKERS[request.param]
