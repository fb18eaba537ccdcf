"""Words of what is told of a story."""

from __future__ import annotations

import re
from itertools import pairwise

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def plot_words(text: str) -> set[str]:
    """Returns the words and pairs of neighbouring words of a text in lower case."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return {*words, *map(" ".join, pairwise(words))}
