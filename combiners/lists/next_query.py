"""What to look for after a passage: the words of the question that it lacks, and what it names."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from leporello.text.sentences import sentence_spans
from leporello.text.tokens import terms

# Letters of scripts without capitals begin no word here: none of theirs would be left out.
_WORD = regex.compile(
    r"(?<![\p{L}\p{M}\p{N}])[\p{Lu}\p{Lt}\p{Ll}\p{N}][\p{L}\p{M}\p{N}]*(?:['’-][\p{L}\p{M}\p{N}]+)*"
)


def without(question: str, text: str) -> str:
    """Returns the terms of a question that do not stand in a text."""
    stated = set(terms(text))
    return " ".join(term for term in terms(question) if term not in stated)


def names(text: str, question: str) -> str:
    """Returns the words of a text with a capital or a digit in front, each once.

    Left out are those of the question, and a word that the text has in lower case too: it is no
    name, it opened a sentence.
    """
    words = _WORD.findall(text)
    excluded = {*terms(question), *(word for word in words if word[0].islower())}
    left = (word for word in words if not word[0].islower() and word.lower() not in excluded)
    return " ".join(dict.fromkeys(left))


def nearest_sentences(text: str, question: str, count: int) -> str:
    """Returns the sentences that share most with a question, in their order.

    Long ones must share more; so words shared are divided by the root of a sentence's length.

    Args:
        text: Text of a passage.
        question: Question that words are shared with.
        count: Number of sentences; 0 is all of them.
    """
    if not count:
        return text
    wanted = set(terms(question))
    scores = dict(_scored(text, wanted))
    best = sorted(scores, key=lambda span: -scores[span])[:count]
    return " ".join(text[start:end] for start, end in sorted(best))


def _scored(text: str, wanted: set[str]) -> Iterator[tuple[tuple[int, int], float]]:
    for start, end in sentence_spans(text):
        words = terms(text[start:end])
        yield (start, end), len(wanted.intersection(words)) / (1 + len(words)) ** 0.5
