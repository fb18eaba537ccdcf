"""SQuAD's normalisation, for comparing and finding answers."""

from __future__ import annotations

import re
import string

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Normalises a text as SQuAD v1.1's `evaluate-v1.1.py` does before comparing answers.

    In this order: convert to lower case, delete ASCII punctuation, replace articles by blanks, and
    collapse white space to single blanks.
    """
    plain = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())
