"""Stems of the terms that describe the topic of a text, and speakers' names in transcripts."""

import re
from collections.abc import Sequence

from leporello.text.tokens import terms


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


EMPTY_TERMS = _words(
    "a about above after again all also am an and any are as at be because been before being"
    " below between both but by can could d did do does doing down during each few for from"
    " further get go going got had has have having he her here hers him himself his how hmm i if"
    " in into is it its itself just know like ll m me mean mm more most my myself no nor not now"
    " of off oh ok okay on one only or other our ours out over own re really right s said same"
    " say she should so some such t than that the their theirs them then there these they thing"
    " things think this those through to too uh um under until up us ve very was we well were"
    " what when where which while who whom why will with would yeah you your yours according"
    " answer article chapter describe discuss discussed discussing discussion document episode"
    " group happen happened happening happens main meeting paper paragraph passage plot report"
    " script setting story summarise summarize summary talk talked team text transcript whole"
)
_STEM = 6  # characters


def stem(term: str) -> str:
    """Returns a rough stem: the same string for most forms of a word."""
    return term.rstrip("s")[:_STEM] or term


EMPTY_STEMS = frozenset(map(stem, EMPTY_TERMS))


def content_terms(text: str) -> list[str]:
    """Returns the stems of the terms that describe a text's topic, without repetitions."""
    distinct = dict.fromkeys(terms(text))
    return list(dict.fromkeys(stem(t) for t in distinct if t not in EMPTY_TERMS and len(t) > 1))


LINE = re.compile(r"(?:(?<![^\S\n])[^\S\n]++)?+\S[^\n]*+")  # not blank

_LABEL = re.compile(r"[^\S\n]*(?P<name>[^\W_][^:\n]{0,40}?)[^\S\n]*:(?=\s)")
# More words are a sentence, which can also end with a colon.
_NAME_WORDS = 5
_LABELLED = 0.5  # share of the lines of a script that begin with a speaker's name


def is_script(texts: Sequence[str]) -> bool:
    """Returns whether at least half of the lines begin with a speaker's name."""
    lines = labelled = 0
    for text in texts:
        for line in LINE.finditer(text):
            # Half of the lines, not all: long speeches continue without a name.
            lines += 1
            labelled += label(text, *line.span()) is not None
    return lines > 1 and labelled >= _LABELLED * lines


def label(text: str, start: int, end: int) -> re.Match[str] | None:
    """Matches a speaker's name, group `name`, and a colon at the start of a line."""
    match = _LABEL.match(text, start, min(end + 1, len(text)))
    return match if match and len(match["name"].split()) <= _NAME_WORDS else None
