"""Tests all loaders with the kit for authors of plug-ins."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from sheet_files import ALL, Grid
from stories import WRITERS, Story

from leporello import loaders
from leporello.testing import LoaderContract
from leporello.testing.contract import Maker

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
            ".pdf": pdf,
        }
        files = {}
        for suffix in {*loader.suffixes} & {*writers}:
            content = writers[suffix]()
            files[f"made{suffix}"] = content if isinstance(content, bytes) else content.encode()
        return files or super().files_of(loader)


def pdf() -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    buffer = BytesIO()
    canvas = Canvas(buffer)
    canvas.drawString(72, 700, "Good evening.")
    canvas.save()
    return buffer.getvalue()
