"""SQuAD's normalisation, for comparing and finding answers."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Normalises a text as SQuAD v1.1's `evaluate-v1.1.py` does before comparing answers.

    In this order: convert to lower case, delete ASCII punctuation, replace articles by blanks, and
    collapse white space to single blanks.
    """
    plain = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", plain).split())


def token_f1(guess: Sequence[str], reference: Sequence[str]) -> float:
    """Returns the F1 of two lists of words, 0 to 1; 0 if they share no word."""
    shared = (Counter(guess) & Counter(reference)).total()
    return 2 * shared / (len(guess) + len(reference)) if shared else 0.0
