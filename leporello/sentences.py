"""Where sentences begin and end: punctuation and line breaks, no model."""

from __future__ import annotations

import regex

__all__ = ["sentence_spans"]

# A sentence ends at . ! ? … (with what closes after them) before a blank and something that may
# begin one; at their full-width likes; and at a blank line. Initials and common short forms
# end none.
_END = regex.compile(
    r"""
      (?<!\b(?:\p{Lu}|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|cf|etc|al|e\.g|i\.e|Fig|Eq|No|Sec|Inc|Ltd|Co))
      [.!?…]+ [\p{Pe}\p{Pf}"']* (?=\s+[\p{Lu}\p{Lo}\p{N}\p{Ps}\p{Pi}"'])
    | [!?]+ [\p{Pe}\p{Pf}"']* (?=\s)
    | [。！？｡]+ [\p{Pe}\p{Pf}]*
    | (?=\s*\n\s*\n)
    """,
    regex.VERBOSE,
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Returns the (start, end) of each sentence, in order, without the blanks around it."""
    spans: list[tuple[int, int]] = []
    start = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        sentence = text[start:end]
        first = start + len(sentence) - len(sentence.lstrip())
        last = start + len(sentence.rstrip())
        if first < last:
            spans.append((first, last))
        start = end
    return spans
