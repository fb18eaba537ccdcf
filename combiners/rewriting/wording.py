"""Queries from a model's text, or from a question by rules."""

from __future__ import annotations

import regex

from leporello.combiners.stuff import question_only
from leporello.core.records import Asking, Example, Generates
from leporello.text.english.terms import EMPTY_TERMS
from leporello.text.tokens import terms

_LONGEST = 200  # words of a query, since a reader may repeat itself without end
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


def shortened(text: str) -> str:
    """Returns a text in one line, cut to the longest query."""
    return " ".join(text.split()[:_LONGEST])


def written_lines(example: Example, instruction: str, count: int) -> Asking[list[str]]:
    """Returns the first lines of a list that a generative reader writes; empty for others."""
    [is_generative] = yield [Generates()]
    if not is_generative:
        return []
    [output] = yield [question_only(example, instruction)]
    lines = (_MARK.sub("", line, count=1) for line in output.text.splitlines())
    bare = (shortened(line).strip(_ENDS) for line in lines)
    return [*dict.fromkeys(line for line in bare if terms(line) and not line.endswith(":"))][:count]


def rewordings(question: str) -> list[str]:
    """Returns an English question without function words, as a statement, and only its names."""
    words = [word.strip(_ENDS + "?.,;:!()") for word in question.split()]
    content = [word for word in words if not EMPTY_TERMS.issuperset(terms(word))]
    names = [word for word in content if word[0].isupper() or word[0].isdigit()]
    statement = _OPENING.sub("", question.strip(_ENDS + "?"), count=1)
    wordings = dict.fromkeys([" ".join(content), statement, " ".join(names)])
    return [text for text in wordings if terms(text) and terms(text) != terms(question)]


def on_each_name(question: str) -> list[str]:
    """Returns the question once per name, without its other names; empty with fewer than two."""
    names = [*dict.fromkeys(filter(None, map(_name, _CAPITALS.findall(question))))]
    questions: list[str] = []
    for name in names if len(names) > 1 else ():
        text = question
        for removed in names:
            text = text if removed in name else text.replace(removed, "")
        questions.append(" ".join(text.split()))
    return questions


def _name(capitals: str) -> str:
    """Returns capitalised words without function words at the beginning."""
    words = capitals.split()
    while words and EMPTY_TERMS.issuperset(terms(words[0])):
        del words[0]
    return " ".join(words)
