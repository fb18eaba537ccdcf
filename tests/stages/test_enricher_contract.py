"""Tests all enrichers with the kit for authors of plug-ins, and with a reader that shortens."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from leporello import enrichers
from leporello.readers import Lead
from leporello.testing import EnricherContract
from leporello.testing.contract import Maker

MAKERS: Mapping[str, Maker] = {
    "ContextualChunks": enrichers.ContextualChunks,
    "Gists": lambda: enrichers.Gists(words=30),
    "ParentChunks": enrichers.ParentChunks,
    "Propositions": enrichers.Propositions,
    "Questions": enrichers.Questions,
    "SectionTree": enrichers.SectionTree,
    "SummaryTree": lambda: enrichers.SummaryTree(width=3, roots=1),
}


def test_every_enricher_is_tested() -> None:
    """A new enricher needs an entry in the table."""
    assert {*MAKERS} == {*enrichers.__all__}


class TestEnrichers(EnricherContract):
    """Enrichers of chunks of half a paragraph."""

    huge = 100_000
    around: ClassVar[Mapping[str, Any]] = {"reader": Lead(words=5)}

    @pytest.fixture(params=MAKERS)
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        return MAKERS[request.param]
