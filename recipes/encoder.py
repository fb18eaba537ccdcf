"""Loads the encoder of the recipe `answers` for the recipes `choices` and `statements`."""

from __future__ import annotations

from pathlib import Path

from leporello.readers.embedded.encoder import Encoder
from leporello.readers.embedded.spans import SpanHead


def head_of(folder: Path) -> SpanHead:
    """Returns the head of an encoder that reads statements with passages.

    Args:
        folder: Folder that the recipe `answers` wrote.
    """
    return SpanHead(Encoder(folder))
