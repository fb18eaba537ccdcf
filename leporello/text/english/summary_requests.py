"""Whether a summary is wanted, of all or of a topic."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from leporello.text.english.content_terms import content_terms
from leporello.text.english.scripts import is_script

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


class Wanted(Enum):
    """What kind of answer a question wants.

    Attributes:
        SHORT: A short answer, not a summary.
        WHOLE: A summary of the whole document, all of which should be read.
        TOPIC: A summary of what is said about a topic, for which passages about it suffice.
    """

    SHORT = "short"
    WHOLE = "whole"
    TOPIC = "topic"


def wanted(question: str, instruction: str = "", texts: Sequence[str] = ()) -> Wanted:
    """Returns whether a question wants a summary, by English words; one of the whole if empty.

    Args:
        question: Question; may be empty.
        instruction: Instruction; may be empty.
        texts: Passages; where they are turns of a meeting or a script, questions about views and
            discussions want a summary too.
    """
    if not question.strip():
        asks_otherwise = "?" in instruction and not _INSTRUCTED.search(instruction)
        return Wanted.SHORT if asks_otherwise else Wanted.WHOLE
    summary = bool(_INSTRUCTED.search(instruction) or _ASKED.match(question))
    views = _VIEWS.search(question) is not None and not _SHORT.match(question)
    summary = summary or (views and is_script(texts))
    if not summary:
        return Wanted.SHORT
    about = set(content_terms(question)) - _REQUEST
    return Wanted.TOPIC if about else Wanted.WHOLE
