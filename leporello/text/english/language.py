"""Whether a text is English, for models that read nothing else."""

from __future__ import annotations

import re
from itertools import islice

_WORD = re.compile(r"[^\W\d_]+")
# Common in English, and rare in its neighbours (`in`, `is`, `of`, `was` are Dutch or German too).
_COMMON = frozenset([
    "the", "and", "that", "with", "for", "from", "this", "which", "by", "had", "have", "they",
    "are", "were", "not", "but", "it", "to", "his", "her", "you", "at", "be", "she",
])  # fmt: skip
_FEWEST = 40  # words below which nothing is told
_MOST = 2000  # words that are looked at
_SHARE = 0.06  # of English prose a fifth to a third; of lists and tables some hundredths more


def looks_english(text: str) -> bool:
    """Returns whether a text of more than a few words looks like English, by its first 2,000."""
    words = [found.group().lower() for found in islice(_WORD.finditer(text), _MOST)]
    if len(words) < _FEWEST:
        return True
    return sum(word in _COMMON for word in words) / len(words) >= _SHARE
