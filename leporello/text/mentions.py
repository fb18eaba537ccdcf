"""Finds mentions of a character in a text; docs/decisions/0014-mentions.md explains the rules."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from leporello.core.records import Document, Span
from leporello.text.folding import ComposedText
from leporello.text.person_names import (
    APOSTROPHES,
    HYPHENS,
    MEN,
    PARTICLES,
    ROLES,
    SUFFIXES,
    TITLES,
    WOMEN,
    Name,
    folded,
    names,
    pattern,
)

# After these words a new person can follow: `Ginny and Potter` still mentions Potter.
_JOINERS = PARTICLES | {"and", "&", "or", "the", "a", "an", "with", "to", "of", "by", "und", "et"}
# A bound keeps the search linear, since some paragraphs are one very long line.
_AROUND = 60  # characters that are examined on either side
_OPENING = "\"“‘'([_*"
_BLANK = r"[^\S\r\n]{1,3}"
# Text between two words of one name: initials, particles, a middle name, a nickname.
_BETWEEN = re.compile(
    rf"{_BLANK}(?:(?:[^\W\d_]\.?|(?:{'|'.join(sorted(PARTICLES))})|[A-ZÀ-Þ][\w’'-]*"
    rf"|[\"“'‘][^\"“”'‘’\n]{{1,25}}[\"”'’]){_BLANK}){{0,3}}|[{HYPHENS}·]|(?:)"
)
# Possessive, so that long rows of blanks and brackets cause no backtracking.
_CUE_END = re.compile(r"[ \t]*+(?:\([^()\n]*+\)?+[ \t]*+)*+:?+[ \t]*+\Z")
_NEXT_WORD = re.compile(r"[ \t]([^\W\d_][\w’'-]+)")


class _MentionRun(NamedTuple):
    """Adjacent phrases of a name: characters, and indices of the first and last phrase."""

    start: int
    end: int
    first: int
    last: int


class _Verdict(NamedTuple):
    """A run that is the character's name: where it begins, and whether its capital proves it."""

    start: int
    is_certain: bool


def mentions_in(document: Document, name: str) -> tuple[Span, ...]:
    """Returns the mentions of a name in a document, cached by the document."""

    def found() -> tuple[Span, ...]:
        text = document.memo(ComposedText, lambda: ComposedText.of(document.text))
        return tuple(mentions(text, name))

    return document.memo(("mentions", name), found)


def mentions(composed: ComposedText, name: str) -> Sequence[Span]:
    """Returns the spans of a text that mention a character, in order and without overlap.

    A span includes a title before the name, but not a possessive ending. The name may have titles,
    brackets and nicknames in quotes, in any letter case. Takes time linear in the text.
    """
    text = composed.text
    spans = sorted({span for variant in names(name) for span in _mentions_of(text, variant)})
    merged: list[Span] = []
    for span in spans:
        if merged and span.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return [composed.span(span.start, span.end) for span in merged]


def _mentions_of(text: str, name: Name) -> Iterator[Span]:
    """Yields the mentions of one variant of a character's name.

    A word that is first in its sentence, or is among words in capitals, may not be a name. It
    counts if the text uses it as this name at least as often as in small letters.
    """
    # In a text without capitals, names in small letters count (decision 14).
    has_capitals = not text.islower()
    # With these counts, `Will you?` does not mention Will, without a list of words (decision 14).
    lower_counts = [0] * len(name.phrases)
    runs: list[_MentionRun] = []
    for number, phrase in enumerate(name.phrases):
        for match in pattern(phrase).finditer(text):
            if has_capitals and match[0][0].islower():
                lower_counts[number] += 1
            else:
                runs.append(_MentionRun(match.start(), match.end(), number, number))
    # Two passes, because later uses in the text also prove that a word is this name.
    verdicts = [(run, _verdict(text, run, name)) for run in _joined(text, sorted(runs))]
    certain_counts = [0] * len(name.phrases)
    for run, verdict in verdicts:
        if verdict and verdict.is_certain:
            certain_counts[run.first] += 1
            certain_counts[run.last] += run.last != run.first
    for run, verdict in verdicts:
        is_name = certain_counts[run.first] >= lower_counts[run.first]
        if verdict and (verdict.is_certain or is_name):
            yield Span(verdict.start, run.end)


def _joined(text: str, runs: Sequence[_MentionRun]) -> list[_MentionRun]:
    """Joins neighbouring runs that are words of one name: `Jack Sparrow`."""
    joined: list[_MentionRun] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last and last.last < run.first and _belong(text, last.end, run.start):
            joined[-1] = _MentionRun(last.start, run.end, last.first, run.last)
        elif not last or run.start >= last.end:
            joined.append(run)
    return joined


def _belong(text: str, end: int, start: int) -> bool:
    is_near = 0 <= start - end <= _AROUND
    return is_near and _BETWEEN.fullmatch(text, end, start) is not None


def _verdict(text: str, run: _MentionRun, name: Name) -> _Verdict | None:
    """Judges names by the text around them; None if it belongs to somebody else's name."""
    before = text[max(0, run.start - _AROUND) : run.start].replace("\r", "\n").rpartition("\n")[2]
    after = text[run.end : run.end + _AROUND].replace("\r", "\n").partition("\n")[0]
    mention = text[run.start : run.end]
    if _glued(before, after):
        return None
    word = before.split()[-1].lstrip(_OPENING) if before[-1:].isspace() and before.strip() else ""
    start = run.start - len(before) + before.rfind(word) if word else run.start
    key = folded(word).rstrip(".")
    # `Mr. Darcy` is not `Miss Darcy`, but a title of another kind proves nothing (decision 14).
    if key in TITLES and not word.islower():
        titles = {key, name.title}
        differs = run.first == run.last and titles & MEN and titles & WOMEN
        return None if differs else _Verdict(start, is_certain=True)
    # Another initial belongs to a relative with the same family name (decision 14).
    if run.first and len(key) == 1 and word.endswith("."):  # H. Potter
        return _Verdict(start, is_certain=True) if key == name.phrases[0][0] else None
    whole_line = not before.replace(word, "", 1).strip() and _CUE_END.match(after) is not None
    # `James Potter` is not Harry. `Potter` alone still counts: a passage about the family is also
    # about him, and its loss would cost more than a false mention (decision 14).
    if run.first and _is_given_name(word, before, whole_line and mention.isupper()):
        return None
    # `Harry Osborn` is not Harry Potter, although the given name matches (decision 14).
    if run.last < len(name.phrases) - 1 and _has_surname(before, mention, after):
        return None
    # Two words of a name are proof anywhere: a sentence rarely begins so by chance.
    return _Verdict(run.start, run.first < run.last or _has_free_capital(before, mention, after))


def _glued(before: str, after: str) -> bool:
    """Returns whether a run is part of a compound name: `Anne-Marie`, `O'Brien`."""
    if before[-1:] and before[-1] in HYPHENS and before[-2:-1].isalnum():
        part = re.split(rf"[{HYPHENS}\s]", before[:-1])[-1].lstrip(_OPENING)
        # A small letter before the hyphen makes a phrase, not a name: `ex-Potter` counts.
        return part[:1].isupper()
    if before[-1:] and before[-1] in APOSTROPHES and before[-2:-1].isupper():
        # One capital before the apostrophe is part of a name (`O'`); a whole word is a quotation.
        return not before[-3:-2].isalnum()
    return bool(after) and after[0] in HYPHENS and after[1:2].isupper()


def _is_given_name(word: str, before: str, among_capitals: bool) -> bool:
    """Returns whether the word before a family name is somebody else's given name."""
    # A comma or point after the word separates two people, so it must be pure letters.
    if not word[:1].isupper() or not word.isalpha() or folded(word) in _JOINERS | ROLES:
        return False
    if word.isupper():
        return among_capitals
    # A capital at the start of a sentence proves nothing, so `When Potter came` counts. The
    # price: `James Potter` there counts for Harry too (decision 14).
    return _continues_sentence(before[: before.rfind(word)])


def _has_surname(before: str, mention: str, after: str) -> bool:
    """Returns whether another family name follows a given name."""
    following = _NEXT_WORD.match(after)
    word = following[1] if following else ""
    if not word[:1].isupper() or folded(word) in TITLES | SUFFIXES | _JOINERS:
        return False
    if not word.isupper():
        return word[1:].islower() and not mention.isupper()
    following_text = after[following.end() :] if following else ""
    return mention.isupper() and not before.strip() and _CUE_END.match(following_text) is not None


def _has_free_capital(before: str, mention: str, after: str) -> bool:
    """Returns whether a word has a capital although its position does not require one."""
    if not before.strip() and after.lstrip(" \t").startswith(":"):
        return True  # HARRY: Where have they gone?
    if mention.isupper() and len(mention) > 1:
        among = any(map(str.islower, before + after))
        return among or (not before.strip() and _CUE_END.match(after) is not None)
    # Scripts without letter case have no capitals that could prove a name.
    return mention.lower() == mention.upper() or _continues_sentence(before)


def _continues_sentence(before: str) -> bool:
    """Returns whether the text before a word on its line belongs to the same sentence."""
    last = before.rstrip()[-1:]
    # Not colons or dashes: a capital after them may begin another sentence.
    return last.isalnum() or last in (",", ";", "&")
