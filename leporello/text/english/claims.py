"""A question and its answer as one statement."""

from __future__ import annotations

import re

_WHO = re.compile(r"(?:who|whom|what)\b", re.I)
_WHICH = re.compile(r"(?:in |on |at |by |from |to |of |for |with )?(?:which|what)\b", re.I)
_PLACE = re.compile(r"(?:when|where)\b", re.I)
_COUNT = re.compile(r"how (?:many|much)\b", re.I)
_DO = frozenset({"do", "does", "did"})
_BE = frozenset((
    "is", "are", "was", "were", "has", "have", "had", "can", "could", "will", "would", "shall",
    "should", "may", "might", "must",
))  # fmt: skip
_PARTICIPLE = re.compile(
    r"(?:\w+(?:ed|ing)|born|built|made|held|found|written|known|given|won|sold|kept|left|called|seen"
    r"|taken|shown|led|sent|set|put|lost|brought|taught|bought|drawn|grown|chosen|located|from|to|in)",
    re.I,
)
_PREPOSITION = frozenset((
    "in", "on", "at", "by", "from", "to", "of", "for", "with", "during", "after", "before", "near",
    "since",
))  # fmt: skip
_KIND = frozenset(("kind", "kinds", "type", "types", "sort", "sorts"))
_NAMED = 6  # words before the verb that a thing asked for has at most


def claim(question: str, answer: str) -> str | None:  # noqa: PLR0911 -- a return a kind of question
    """Returns the statement that an answer makes of a question; None where no rule fits."""
    words = question.strip().rstrip("?. ").split()
    text = " ".join(words)
    if len(words) < 3 or "or" in words:  # noqa: PLR2004 -- a question word, a verb, its object
        return None
    if _PLACE.match(text):
        return _told(words[1:], _placed(answer))
    if _COUNT.match(text):
        thing, rest = _named(words[2:])
        return _told(rest, f"{answer} {' '.join(thing)}") if rest else None
    if _WHO.match(text) and words[1].lower() not in _DO | _BE:
        thing, rest = _named(words[1:])
        kind = words[1].lower() in _KIND or len(thing) < 3  # noqa: PLR2004 -- `what year did`
        asks_thing = words[0].lower() == "what" and rest and kind
        return _told(rest, answer) if asks_thing else _sentence([answer, *words[1:]])
    if _WHO.match(text):
        return _told(words[1:], answer)
    if _WHICH.match(text):
        _, rest = _named(words[1:])
        return _told(rest, answer) if rest else None
    return None


def denied(statement: str) -> str | None:
    """Returns the contrary of a statement, its first verb denied; None if none can be."""
    words = statement.split()
    place = next((i for i, w in enumerate(words) if i and w in _BE), None)
    return None if place is None else " ".join([*words[: place + 1], "not", *words[place + 1 :]])


def _named(words: list[str]) -> tuple[list[str], list[str]]:
    """Returns what is asked for, and the rest from its verb on; empty if that is not seen."""
    place = next((i for i, w in enumerate(words[:_NAMED]) if w.lower() in _DO | _BE), 0)
    return words[:place], words[place:] if place else []


def _told(words: list[str], answer: str) -> str:
    """Returns a verb with its subject turned round, and the answer where it belongs."""
    verb, rest = words[0].lower(), words[1:]
    if verb not in _BE | _DO or not rest:
        return _sentence([answer, *words])
    if verb in _DO:
        return _sentence([*rest, answer])
    place = next((i for i, w in enumerate(rest) if _PARTICIPLE.fullmatch(w)), len(rest))
    if not place:
        return _sentence([answer, verb, *rest])
    return _sentence([*rest[:place], verb, *rest[place:], answer])


def _placed(answer: str) -> str:
    return answer if answer.split(maxsplit=1)[0].lower() in _PREPOSITION else f"in {answer}"


def _sentence(parts: list[str]) -> str:
    text = " ".join(parts).strip(" .")
    return f"{text[:1].upper()}{text[1:]}."
