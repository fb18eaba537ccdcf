"""Turns an English question and its answer into a statement."""

from __future__ import annotations

import re

_WHO = re.compile(r"(?:who|whom|what)\b", re.I)
_WHICH = re.compile(r"(?:in |on |at |by |from |to |of |for |with )?(?:which|what)\b", re.I)
_PLACE = re.compile(r"(?:when|where)\b", re.I)
_COUNT = re.compile(r"how (?:many|much)\b", re.I)
_DO = frozenset({"do", "does", "did"})
AUXILIARIES = frozenset((
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
_NOUN_WORDS = 6  # words before the verb within which a question names its object


def claim(question: str, answer: str) -> str | None:  # noqa: PLR0911 -- one per kind of question
    """Returns a statement of a question and its answer; None if no rule fits."""
    words = question.strip().rstrip("?. ").split()
    text = " ".join(words)
    if len(words) < 3 or "or" in words:  # noqa: PLR2004 -- a question word, a verb, its object
        return None
    if _PLACE.match(text):
        return _statement(words[1:], _with_preposition(answer))
    if _COUNT.match(text):
        noun, clause = _noun_and_clause(words[2:])
        return _statement(clause, f"{answer} {' '.join(noun)}") if clause else None
    if _WHO.match(text) and words[1].lower() not in _DO | AUXILIARIES:
        noun, clause = _noun_and_clause(words[1:])
        is_noun = words[1].lower() in _KIND or len(noun) < 3  # noqa: PLR2004 -- `what year did`
        has_noun = words[0].lower() == "what" and clause and is_noun
        return _statement(clause, answer) if has_noun else _sentence([answer, *words[1:]])
    if _WHO.match(text):
        return _statement(words[1:], answer)
    if _WHICH.match(text):
        _, clause = _noun_and_clause(words[1:])
        return _statement(clause, answer) if clause else None
    return None


def _noun_and_clause(words: list[str]) -> tuple[list[str], list[str]]:
    """Splits a question before its verb; both parts are empty if it has no known verb."""
    place = next(
        (i for i, w in enumerate(words[:_NOUN_WORDS]) if w.lower() in _DO | AUXILIARIES), 0
    )
    return words[:place], words[place:] if place else []


def _statement(words: list[str], answer: str) -> str:
    """Puts the subject of a clause before its verb, and inserts the answer."""
    verb, clause = words[0].lower(), words[1:]
    if verb not in AUXILIARIES | _DO or not clause:
        return _sentence([answer, *words])
    if verb in _DO:
        return _sentence([*clause, answer])
    place = next((i for i, w in enumerate(clause) if _PARTICIPLE.fullmatch(w)), len(clause))
    if not place:
        return _sentence([answer, verb, *clause])
    return _sentence([*clause[:place], verb, *clause[place:], answer])


def _with_preposition(answer: str) -> str:
    return answer if answer.split(maxsplit=1)[0].lower() in _PREPOSITION else f"in {answer}"


def _sentence(parts: list[str]) -> str:
    text = " ".join(parts).strip(" .")
    return f"{text[:1].upper()}{text[1:]}."
