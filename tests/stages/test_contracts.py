"""Tests all chunkers, enrichers, loaders and metrics with the kit for authors of plug-ins."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import pytest
from sheet_files import ALL, Grid
from stories import WRITERS, Story, pdf

from leporello import chunkers, enrichers, loaders
from leporello.metrics import METRICS
from leporello.readers import Lead
from leporello.testing import ChunkerContract, EnricherContract, LoaderContract, MetricContract
from leporello.testing.contract import Maker

CHUNKERS: Mapping[str, Maker] = {
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
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        return CHUNKERS[request.param]


ENRICHERS: Mapping[str, Maker] = {
    "ContextualChunks": enrichers.ContextualChunks,
    "Gists": lambda: enrichers.Gists(words=30),
    "ParentChunks": enrichers.ParentChunks,
    "Propositions": enrichers.Propositions,
    "Questions": enrichers.Questions,
    "SectionTree": enrichers.SectionTree,
    "SummaryTree": lambda: enrichers.SummaryTree(width=3, roots=1),
}


class TestEnrichers(EnricherContract):
    """Enrichers of chunks of half a paragraph."""

    huge = 100_000
    around: ClassVar[Mapping[str, Any]] = {"reader": Lead(words=5)}

    @pytest.fixture(params=enrichers.__all__)
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        return ENRICHERS[request.param]


STORY = Story([(1, "Report", ["It begins here.", "Grüße, 文字 😀."]), (2, "End", ["So it ends."])])
ROWS = Grid([["Item", "Amount"], ["Rent of the flat", "900"]])
CUES = b"1\n00:00:01,000 --> 00:00:02,000\nGood evening.\n\n"


class TestLoaders(LoaderContract):
    """Loaders, with a file for each suffix that the tests can write."""

    @pytest.fixture(params=loaders.__all__)
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        maker: Maker = getattr(loaders, request.param)
        return maker

    def files_of(self, loader: Any) -> Mapping[str, bytes]:
        """Returns files with a loader's suffixes, or else plain files with its first suffix."""
        writers: dict[str, Callable[[], str | bytes]] = {
            **{suffix: partial(write, STORY) for suffix, write in WRITERS.items()},
            **{suffix: partial(write, ROWS) for suffix, write in ALL.items()},
            ".json": lambda: json.dumps(ROWS.rows),
            ".srt": lambda: CUES,
            ".pdf": partial(pdf, "Good evening."),
        }
        files = {}
        for suffix in {*loader.suffixes} & {*writers}:
            content = writers[suffix]()
            files[f"made{suffix}"] = content if isinstance(content, bytes) else content.encode()
        return files or super().files_of(loader)


JAVA = ("bleu_coco", "meteor_coco", "rouge_l_coco")  # see tests/metrics/test_golden.py


class TestMetrics(MetricContract):
    """Metrics without Java."""

    tolerance = 1e-9

    @pytest.fixture(params=[name for name in METRICS if name not in JAVA])
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        return METRICS[request.param]
