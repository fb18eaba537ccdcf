"""Classifies questions by the answer that they ask for, and finds questions within questions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from leporello.text.english.terms import content_terms, is_script

QuestionKind = Literal[
    "none", "statement", "yes_no", "either", "who", "when", "where", "how_many", "reason", "other"
]
_BY_WORD: tuple[tuple[QuestionKind, str], ...] = (
    ("who", "who|whom|whose"),
    ("when", "when|(?:what|which) (?:year|date|day|month|time|century)"),
    ("where", "where|(?:what|which) (?:city|country|state|town|place)"),
    ("how_many", "how (?:many|much|long|old|far|often|large|big|high|tall)"),
)
_PREPOSITION = r"\W*(?:(?:in|on|at|by|from|to|of|since|until|for|with|under)\s+)?"
_VERBS = "do|does|did|is|are|was|were|can|could|should|would|will|has|have|had|may|might|to|come"
_WORDS = {kind: re.compile(rf"{_PREPOSITION}(?:{words})\b", re.I) for kind, words in _BY_WORD}

# `How` without a verb after it asks for a measure: how many, how quickly.
_NAME = re.compile(
    rf"{_PREPOSITION}(?:(?:who|whom|whose|when|where|which)\b|how (?!(?:{_VERBS}|about)\b)"
    r"|what (?:year|date|day|time|city|country|state|town|name|age|number|nationality"
    r"|(?:is|was) the name)\b)",
    re.IGNORECASE,
)
_REASON = re.compile(rf"\W*(?:why|in what way|describe|explain|how (?:{_VERBS}))\b", re.IGNORECASE)
_SEVERAL = re.compile(
    rf"{_PREPOSITION}(?:(?:what|which|who) (?:are|were)\b|list\b|name (?:the|all|two|three)\b"
    r"|what (?:two|three|four|five)\b"
    rf"|(?:what|which)(?:\s+(?!(?:{_VERBS})\b)[\w-]+){{0,3}}?\s+(?!\w*(?:ss|us|is|as)\b|does)\w+s\s+"
    r"(?:are|were|do|did|have|had|can|could|should|will|would|may|might)\b)",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\W*(?:(?:in|on|at|by|from|to|of|for|with|under)\s+)?(?:who|whom|whose|what|when|where|which|why"
    r"|how|list|name|give|tell|describe|explain|find|summari[sz]e|outline|compare|discuss|identify"
    r"|please|show|write|state|define)\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might"
    r"|must)(?:n't)?"
)

_OR = re.compile(r"(?:(?:(?<!\s)\s++)?+,|(?<!\s))\s++or\s++", re.IGNORECASE)
_CUT = re.compile(r"[,:]|\bbetween\b|\bthe (?:film|movie|book|magazine|band|song)\b", re.IGNORECASE)
# Words within a name: `Gone with the Wind`, `Vasco da Gama`.
_SMALL = frozenset(
    {"of", "the", "and", "in", "a", "an", "for", "to", "on", "at", "with", "from", "by", "&"}
    | {"de", "la", "le", "les", "du", "des", "del", "di", "da", "der", "und", "et", "van", "von"}
)
_LONGEST = 10  # words of a choice
_ENUMERATED = re.compile(r";|,(?!\s*[A-Z])")  # `Now, Voyager` is one name
_AFTER = re.compile(r"\s(?:who|which|what|is|was|are|were|has|had|have|does|do|did|will|can)\b")
_PAIR = re.compile(
    r"(?:\W*between|.*\bout of)\b(?P<first>.+?)\band\b(?P<second>.+)", re.I | re.DOTALL
)

_INSTRUCTED = re.compile(
    r"\b(?:write|give|provide|produce|generate)\b[^.:]{0,40}\bsummary\b(?! IDs?\b)"
    r"|\bsummari[sz]e\b"
    r"|\bin (?:a|one|several|a few) (?:short )?paragraphs?\b|\bin one or more sentences\b",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\s*(?:please\s+|can you\s+|could you\s+)*"
    r"(?:summari[sz]e\b|sum up\b|recap\b|outline\b|tl;?dr\b|describe\b|retell\b"
    r"|(?:give|write|make|provide|produce)\b[^.:]{0,40}\b(?:summary|overview|outline|recap)\b"
    r"|(?:a |the )?(?:short |brief )?(?:summary|overview|recap)\b"
    r"|what(?:'s| is| was) (?:the )?(?:plot|gist|storyline|summary)\b"
    r"|what(?:'s| is| was)? (?:this|the|it) ?(?:text|document|report|story|book|paper|article)?"
    r" (?:is |was )?about\s*\W*$"
    r"|what happens(?: in (?:the|this)\b|\W*$)"
    r"|what (?:did|do|does|was|were) .{0,80}?\b(?:discuss(?:ed)?|talk(?:ed)? about)\b)",
    re.IGNORECASE,
)
# In a meeting or a script these want more than a name or a number.
_SHORT = re.compile(
    r"\s*(?:who|whom|whose|when|where|which|how (?:many|much|old|long|often|far)|is|are|was|were"
    r"|do|does|did|has|have|had|can|could|will|would|should)\b",
    re.IGNORECASE,
)
_VIEWS = re.compile(
    r"\b(?:agree|attitude|conclu|consider|decid|decision|describ|disagree|discuss|feel|idea|mention"
    r"|opinion|propos|reason|recommend|said|say|suggest|think|thought|view|why|about|talk)",
    re.IGNORECASE,
)
_REQUEST = frozenset(  # stems
    {"brief", "entire", "full", "give", "gist", "long", "make", "outlin", "overvi", "page"}
    | {"please", "produc", "provid", "recap", "short", "storyl", "sum", "write"}
)


def asks_for_a_name(question: str) -> bool:
    """Returns whether a question asks for a few words: a name, a date, a place or a number."""
    return bool(_NAME.match(question))


def asks_for_several(question: str) -> bool:
    """Returns whether a question asks for several things, by a plural noun or a number."""
    return bool(_SEVERAL.match(question))


def asks_for_a_reason(question: str) -> bool:
    """Returns whether a question asks for a reason or a manner, which need a sentence."""
    return bool(_REASON.match(question))


def asks_yes_no(question: str) -> bool:
    """Returns whether a question asks for yes or no, by its first word and the lack of an `or`."""
    # Bounded, since users may paste whole files as questions.
    words = question.lower().split(maxsplit=1000)
    # `Is it red or blue?` asks for one of two things.
    return bool(words) and bool(_YES_NO.fullmatch(words[0])) and "or" not in words


def is_statement(text: str) -> bool:
    """Returns whether a text is a statement, not a question or an instruction."""
    # A full stop alone proves nothing: `Describe the plot.` asks.
    return text.rstrip().endswith(".") and not _ORDER.match(text) and not asks_yes_no(text)


def kind_of(question: str) -> QuestionKind:
    """Returns the kind of answer that a question asks for; `none` if it is blank."""
    if not question.strip():
        return "none"
    if is_statement(question):
        return "statement"
    if named_choices(question):
        return "either"
    if asks_yes_no(question):
        return "yes_no"
    by_word = (kind for kind, words in _WORDS.items() if words.match(question))
    return next(by_word, "reason" if asks_for_a_reason(question) else "other")


def named_choices(question: str) -> tuple[str, str] | None:
    """Returns the two names that a question asks to choose between, or None."""
    question = question.strip().rstrip("?. ")
    parts = _OR.split(question)
    if len(parts) != 2:  # noqa: PLR2004
        pair = _PAIR.match(question)
        if pair is None:
            return None
        parts = [pair["first"], pair["second"]]
    verb, _, after = parts[0].partition(" ")
    has_predicate = bool(_YES_NO.fullmatch(verb.lower()))
    first = _name_at_end(after if has_predicate else parts[0])
    second = _name_at_start(parts[1], has_predicate)
    return (first, second) if first and second else None


def _name_at_end(text: str) -> str:
    """Returns the name at the end of a text."""
    cut = [match.end() for match in _CUT.finditer(text)]
    if cut and _is_name(text[cut[-1] :].split()):
        return text[cut[-1] :].strip(" '\"")
    words = text.split()
    first = len(words)
    while first > 0 and (_is_capital(words[first - 1]) or words[first - 1].lower() in _SMALL):
        first -= 1
    while first < len(words) and words[first].lower() in _SMALL - {"the", "a"}:
        first += 1
    return " ".join(words[first:][-_LONGEST:]).strip(" '\"")


def _name_at_start(text: str, followed: bool) -> str:
    """Returns the name at the beginning of a text, which may be `followed` by a predicate."""
    words = _AFTER.split(_ENUMERATED.split(text)[0])[0].split()[:_LONGEST]
    if followed:
        others = (n for n, w in enumerate(words) if not _is_capital(w) and w.lower() not in _SMALL)
        words = words[: next(others, None)]
    while words and words[-1].lower() in _SMALL:
        words.pop()
    return " ".join(words).strip(" '\"") if _is_name(words) else ""


def _is_name(words: list[str]) -> bool:
    return 0 < len(words) <= _LONGEST and (_is_capital(words[0]) or words[0].lower() in _SMALL)


def _is_capital(word: str) -> bool:
    stripped = word.lstrip("'\"(")
    return bool(stripped) and (stripped[0].isupper() or stripped[0].isdigit())


class Wanted(Enum):
    """Length and scope of the answer that a question asks for."""

    SHORT = "short"  # not a summary
    WHOLE = "whole"  # a summary of the complete document, all of which should be read
    TOPIC = "topic"  # a summary on a topic, for which passages on the topic suffice


def wanted(question: str, instruction: str = "", texts: Sequence[str] = ()) -> Wanted:
    """Returns whether a question asks for a summary, by English words; an empty question does.

    If the texts are turns of a meeting or a script, questions about views do too.
    """
    if not question.strip():
        has_other_question = "?" in instruction and not _INSTRUCTED.search(instruction)
        return Wanted.SHORT if has_other_question else Wanted.WHOLE
    summary = bool(_INSTRUCTED.search(instruction) or _ASKED.match(question))
    views = _VIEWS.search(question) is not None and not _SHORT.match(question)
    summary = summary or (views and is_script(texts))
    if not summary:
        return Wanted.SHORT
    about = set(content_terms(question)) - _REQUEST
    return Wanted.TOPIC if about else Wanted.WHOLE


_MAKER = "director|composer|performer|author|writer|producer|creator|singer|artist"
_PERSON = (
    "father|mother|husband|wife|spouse|partner|lover|son|daughter|child|brother|sister|sibling"
    "|step(?:father|mother|son|daughter|child)|uncle|aunt|nephew|niece|grandson|granddaughter"
    "|(?:(?:paternal|maternal) )?grand(?:father|mother)|successor|predecessor|founder|illustrator"
    "|designer|inventor|discoverer|architect|editor|screenwriter|star|actor|actress|narrator|painter"
    "|owner|leader|president|chairman|chief executive|king|queen|ruler|captain|coach|manager|host"
    f"|{_MAKER}"
)
_THING = (
    "publisher|developer|operator|manufacturer|distributor|record label|capital|birthplace|hometown"
    "|place of birth|alma mater|employer|home stadium|home ground|headquarters"
)
_KIND = (
    "film|movie|song|album|single|book|novel|play|poem|opera|series|show|game|painting|band|company"
)
# Words of names begin with capitals or digits, and `#1` refers to a name; quotes contain several.
_WORD = r"""(?:"[^"?]{1,99}"|\([^()?]{1,99}\)|['’(#]?[^\W_a-z][^\s?"]{0,99})"""
_BETWEEN = rf"(?: (?:{'|'.join(sorted(_SMALL))})){{0,3}}"
_ENTITY = rf"(?P<name>(?:the )?(?:(?:{_KIND}) )?{_WORD}(?:{_BETWEEN} {_WORD}){{0,15}})"
_ROLE = rf"(?P<role>{_PERSON}|{_THING})(?![\w-])"
# Not compiled here: that takes longer than all other patterns, and most pipelines need none.
_RELATIONS = (
    rf"\bthe {_ENTITY} (?P<role>{_MAKER}|birthplace)(?![\w-])",
    rf"(?<=\s){_ENTITY}['’]s? {_ROLE}",
    rf"\bthe {_ROLE} (?:of|in|for) {_ENTITY}(?<!['’]s)",
)
_CLAUSE = (
    r"\bthe (?P<noun>[a-z]+) (?P<link>that|who|which|where|in which) (?!(?:he|she|they|it)\b)"
    r"(?P<clause>(?:(?!\b(?:what|which|who|whom|how)\b)[^,?]){1,200}?)"
)
# A clause at the end, or before the verb of a question such as `When did the man who wrote it die?`
_CLAUSES = (
    rf"(?i)(?P<verb>\b(?:did|does|do|was|were|is|are) ){_CLAUSE}"
    r"(?P<end> \w+(?: (?:to|from|in|at|on|for|with|of))?)\W*$",
    rf"(?i)(?P<verb>){_CLAUSE}(?P<end>)\W*$",
)
# A question that only asks for the answer to the inner one.
_BARE = re.compile(
    r"\W*+(?:(?:who|what|which)(?: is| was| are| were|'s)? |(?:tell|give|name)(?: me)? )?"
    r"(?:the name of )?\{\}\W*+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Nested:
    """A question whose answer another question needs."""

    inner: str
    outer: str  # with `{}` for the answer to the inner question

    @classmethod
    def of(cls, question: str) -> "Nested | None":
        """Returns the first question to answer in an English question, if there is one.

        `Where was the author of Emma born?` contains `Who is the author of Emma?`, after which
        `Where was {} born?` is left.
        """
        for forms, divided in ((_RELATIONS, _by_relation), (_CLAUSES, _by_clause)):
            for form in forms:
                match = re.search(form, question)
                if match and (nested := divided(match)):
                    return nested
        return None


def _by_relation(match: re.Match[str]) -> Nested | None:
    outer = f"{match.string[: match.start()]}{{}}{match.string[match.end() :]}"
    who = "Who" if re.fullmatch(_PERSON, match["role"]) else "What"
    inner = f"{who} is the {match['role']} of {match['name'].strip(' ,')}?"
    return None if _BARE.fullmatch(outer) else Nested(inner, outer)


def _by_clause(match: re.Match[str]) -> Nested | None:
    before = f"{match.string[: match.start()]}{match['verb']}{{}}"
    which = "Who" if match["noun"] == "person" else f"Which {match['noun']}"
    if match["link"] in {"where", "in which"}:
        which = f"In which {match['noun']}"
    nested = Nested(f"{which} {match['clause']}?", f"{before}{match['end']}?")
    return None if _BARE.fullmatch(before) else nested
