"""SQuAD's normalisation, by which answers are compared and found."""

from __future__ import annotations

import re
import string

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Returns the text as SQuAD v1.1's `evaluate-v1.1.py` compares it.

    In this order: lower case, ASCII punctuation deleted, articles to blanks, white space to
    single blanks.
    """
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())
