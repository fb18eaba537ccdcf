"""Queries: as a model wrote them, or made of a question by rule."""

from __future__ import annotations

import regex

from leporello.core.records import Example, Read
from leporello.text.english.content_terms import EMPTY_TERMS
from leporello.text.tokens import terms

_LONGEST = 200  # words of a query: a reader may go on without end
_MARK = regex.compile(r"^\W*(?:(?:step|question|q)\s?)?(?:\d{1,2}\s?[.):]\s*|[-*•–]\s+)?", regex.I)
_ENDS = " \t\r\n\"'“”*_`"
_CAPITALS = regex.compile(r"\p{Lu}[\p{L}\p{M}\p{N}.'’-]*(?:\s+\p{Lu}[\p{L}\p{M}\p{N}.'’-]*)*")
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might)"
_OPENING = regex.compile(
    r"\W*(?:(?:in|on|at|by|from|to|of|for|with)\s+)?"
    rf"(?:(?:who|whom|whose|what|when|where|which|why|how(?:\s+(?:many|much))?)\b\s*)?"
    rf"(?:{_AUXILIARY}\s+)?",
    regex.IGNORECASE,
)


def unread(example: Example, instruction: str) -> Read:
    """Returns a read of the question alone, without a passage: short, whatever the document."""
    return Read((), example.question, instruction, title=example.document.title)


def brief(text: str) -> str:
    """Returns a text in one line, its first words if it is too long to search with."""
    return " ".join(text.split()[:_LONGEST])


def lines(text: str, count: int) -> list[str]:
    """Returns the first lines of a list that a model wrote, without numbers and bullets, each once.

    A line that ends with a colon introduces the list, and is none of it.
    """
    bare = (brief(_MARK.sub("", line, count=1)).strip(_ENDS) for line in text.splitlines())
    return [*dict.fromkeys(one for one in bare if terms(one) and not one.endswith(":"))][:count]


def rewordings(question: str) -> list[str]:
    """Returns an English question without function words, as a statement, and its names alone.

    Those are left out that are blank, or the question.
    """
    words = [word.strip(_ENDS + "?.,;:!()") for word in question.split()]
    telling = [word for word in words if not EMPTY_TERMS.issuperset(terms(word))]
    named = [word for word in telling if word[0].isupper() or word[0].isdigit()]
    statement = _OPENING.sub("", question.strip(_ENDS + "?"), count=1)
    found = dict.fromkeys([" ".join(telling), statement, " ".join(named)])
    return [one for one in found if terms(one) and terms(one) != terms(question)]


def on_each_name(question: str) -> list[str]:
    """Returns the question on each of its names without the others; nothing with fewer than two."""
    names = [*dict.fromkeys(filter(None, map(_name, _CAPITALS.findall(question))))]
    asked: list[str] = []
    for name in names if len(names) > 1 else ():
        rest = question
        for other in names:
            rest = rest if other in name else rest.replace(other, "")
        asked.append(" ".join(rest.split()))
    return asked


def _name(capitals: str) -> str:
    """Returns words with capitals without those in front that open a sentence."""
    words = capitals.split()
    while words and EMPTY_TERMS.issuperset(terms(words[0])):
        del words[0]
    return " ".join(words)
