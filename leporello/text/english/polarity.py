"""Words of an opinion, those behind a negation marked."""

from __future__ import annotations

import re

_NEGATIONS = frozenset({"not", "no", "never", "without", "nothing", "nor", "hardly", "cannot"})
_REACH = 3  # words behind a negation that it turns
_PIECE = re.compile(r"[a-z]+(?:'[a-z]+)?|[!?.,;:]")
# Some corpora are tokenised: "is n't", "it 's".
_SPLIT_NOT = re.compile(r"(?<!\s)\s++n't\b")
_SPLIT_ENDING = re.compile(r"(?<!\s)\s++'(?=[a-z]{1,2}\b)")


def opinion_words(text: str) -> set[str]:
    """Returns the words of a text in lower case; up to three behind a negation are `not WORD`."""
    text = text.lower().replace("’", "'")
    text = _SPLIT_ENDING.sub("'", _SPLIT_NOT.sub("n't", text))
    found, turned = set(), 0
    for piece in _PIECE.findall(text):
        if piece in "!?.,;:":
            turned = 0
        if piece not in ".,;:":
            found.add(f"not {piece}" if turned else piece)
        turned = max(0, turned - 1)
        if piece in _NEGATIONS or piece.endswith("n't"):
            turned = _REACH
    return found
