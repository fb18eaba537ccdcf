"""Answers questions about two things by a question about each.

They ask which thing has the earlier or the later date, or whether both have the same of something.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from leporello.readers.embedded.spans import Candidate, SpanHead, summed
from leporello.text.folding import folded
from leporello.text.squad import normalise

_EARLIER = "first|earlier|earliest|older|oldest"
_LATER = "last|later|latest|younger|youngest|newer|newest|(?:more|most) recent(?:ly)?"
# A question without its two names, such as `Who was born first, or ?`
_ORDER = re.compile(
    rf"(?P<event>.*?)\b(?:(?P<earlier>{_EARLIER})|{_LATER})(?:\W|or|than|out of|between|and)*$",
    re.IGNORECASE | re.DOTALL,
)
# These compare something else than the two things: `Which film has the older director, A or B?`
_OTHER = re.compile(r"\b(?:whose|has|had|have|with|of the)\b", re.IGNORECASE)
_PARTICIPLES = frozenset({"born", "built", "made", "written", "sung"})
_RELEASED = re.compile(
    r"\b(?:film|movie|documentary|album|song|game|series|show|single)s?\b|\bc[ao]me out\b",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\bwho\b|(?:er|or|ist|ian|man|woman|ress) (?:is|was)\b", re.IGNORECASE)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_MONTH = "|".join(_MONTHS)
_DATE = re.compile(
    rf"(?:(?P<day>\d{{1,2}})\s+)?(?:(?P<month>{_MONTH})\s+)?(?:(?P<day_after>\d{{1,2}}),?\s+)?"
    r"(?<!\d)(?P<year>1\d{3}|20\d{2}|[1-9]\d{2})"
    # Texts from the web have glued dates, such as `13 May 194018 January 1989`.
    rf"(?=\D|$|\d{{1,2}}\s(?:{_MONTH}))(?!,\d)(?P<before_christ>\s?B\.?C\b)?",
    re.IGNORECASE,
)
_PASSAGES = 3  # passages about a name that are read
_MENTIONED = 0.6  # least share of a name's words in a passage about it
_CANDIDATES = 5  # answers among which a date is looked for
_EQUAL = 0.5  # least share of the words of a value that an equal one has
# `Are both A and B located in the same country?`, `Did A and B share the same nationality?`
_SAME = re.compile(
    r"\W*(?P<verb>are|were|is|was|do|did|does) (?:both )?(?P<first>\S.{0,200}?),? and "
    r"(?P<second>\S.{0,200}?),? (?P<middle>(?:(?:both|all|of|in|from|for|on|by|to|at|share|have"
    r"|come|belong|play|originate|set|born|\w+ed) ){1,5})the same (?P<noun>\w+(?: \w+)?)\W*",
    re.IGNORECASE,
)
_SHARED = re.compile(r"\b(?:share|have|both|all|of)\b", re.IGNORECASE)


def date_question(question: str, names: tuple[str, str]) -> tuple[str, bool] | None:
    """Returns the question about the date of one thing, and whether the earlier date is wanted.

    The result has `{}` for a name. It is None if the question does not compare dates of the names.
    """
    for name in names:
        question = question.replace(name, " ", 1)
    match = _ORDER.match(question)
    if match is None or _OTHER.search(match["event"]):
        return None
    return _event(match["event"]), bool(match["earlier"])


def _event(text: str) -> str:
    """Returns a question about a date, with `{}` for a name, from `Who was born`, `Who is`."""
    words = re.findall(r"\w+", text.lower())
    verb = words[-1] if words else ""
    if verb in {"die", "died"}:
        return "When did {} die?"
    if verb in _PARTICIPLES or verb.endswith("ed"):
        return f"When was {{}} {verb}?"
    if _RELEASED.search(text):
        return "When was {} released?"
    if "did" in words:
        return f"When did {{}} {verb}?"
    return "When was {} born?" if _PERSON.search(text) else "When was {} founded?"


def value_questions(question: str) -> list[tuple[str, str]]:
    """Returns the two things that may have the same of something, with a question about each.

    The list is empty if the question has another form.
    """
    match = _SAME.fullmatch(question)
    if match is None:
        return []
    middle = " ".join(_SHARED.sub("", match["middle"]).split())
    verb = "is" if match["verb"].lower() in {"are", "were", "is", "was"} else "does"
    names = match["first"], match["second"]
    if not middle:
        return [(name, f"What is the {match['noun']} of {name}?") for name in names]
    return [(name, f"What {match['noun']} {verb} {name} {middle}?") for name in names]


def by_date(
    encoder: SpanHead, question: str, names: tuple[str, str], passages: Sequence[str]
) -> list[Candidate]:
    """Returns both names, the answer first, each with the place of its date.

    Returns nothing if the question does not compare dates, if a date was not found with odds above
    1, or if the dates are equal.
    """
    if not (order := date_question(question, names)):
        return []
    event, is_earlier = order
    answers = [_dated(encoder, event.format(name), name, passages) for name in names]
    dates = [date for date, candidate in answers if candidate and candidate.score > 0]
    if len(dates) < len(answers):
        return []
    # A year alone is compared with the year of a complete date.
    first, second = (date[: min(map(len, dates))] for date in dates)
    if first == second:
        return []
    candidates = [
        replace(candidate, text=name)
        for name, (_, candidate) in zip(names, answers, strict=True)
        if candidate
    ]
    if (first < second) != is_earlier:
        candidates.reverse()
    # The answer is right if both dates are.
    score = min(candidate.score for candidate in candidates)
    return [replace(candidates[0], score=score), replace(candidates[1], score=-score)]


def by_value(encoder: SpanHead, question: str, passages: Sequence[str]) -> list[Candidate]:
    """Returns yes and no, the answer first, with the places of the two values.

    Returns nothing for questions of another form, or if a value was not found with odds above 1.
    """
    questions = value_questions(question)
    answers = [_about(encoder, about, name, passages) for name, about in questions]
    values = [candidates[0] for candidates in answers if candidates and candidates[0].score > 0]
    if len(values) < 2:  # noqa: PLR2004 -- a pair
        return []
    is_equal = shared_words(values[0].text, values[1].text) >= _EQUAL
    score = min(value.score for value in values)
    texts = ("yes", "no") if is_equal else ("no", "yes")
    return [
        replace(value, text=text, score=score - number)
        for number, (value, text) in enumerate(zip(values, texts, strict=True))
    ]


def shared_words(left: str, right: str) -> float:
    """Returns the share of the shorter text's words that the longer text has."""
    words, others = (set(normalise(folded(text)).split()) for text in (left, right))
    return len(words & others) / max(min(len(words), len(others)), 1)


def _dated(
    encoder: SpanHead, question: str, name: str, passages: Sequence[str]
) -> tuple[tuple[int, ...], Candidate | None]:
    """Returns the date in the answers about a name, and its place."""
    for candidate in _about(encoder, question, name, passages)[:_CANDIDATES]:
        # The span of `350 BC` may end before its era.
        text = passages[candidate.passage][candidate.start : candidate.end + len(" B.C.")]
        if match := _DATE.search(text):
            return _parts(match), candidate
    return (), None


def _about(encoder: SpanHead, question: str, name: str, passages: Sequence[str]) -> list[Candidate]:
    """Returns the answers to a question from the passages that have most words of a name."""
    words = set(normalise(folded(name)).split())
    shares = [
        len(words & set(normalise(folded(text)).split())) / max(len(words), 1) for text in passages
    ]
    nearest = sorted(range(len(passages)), key=lambda number: -shares[number])[:_PASSAGES]
    numbers = [number for number in nearest if shares[number] >= _MENTIONED]
    texts = [passages[number] for number in numbers]
    scores = encoder.read([(question, text) for text in texts])
    return [replace(c, passage=numbers[c.passage]) for c in summed(scores)]


def _parts(date: re.Match[str]) -> tuple[int, ...]:
    """Returns year, month and day, as far as a date has them."""
    year = int(date["year"]) * (-1 if date["before_christ"] else 1)
    month = (_MONTHS.index(date["month"].lower()) + 1,) if date["month"] else ()
    day = date["day"] or date["day_after"]
    return (year, *month, *((int(day),) if month and day else ()))
