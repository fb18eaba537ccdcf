"""Detects headings in plain text, and where the section under each heading ends.

If a text has markup, it decides: sections that a loader read (Markdown, HTML), or `#` and
underlines in the text itself. Otherwise headings are recognised by their words, by blank
lines and indentation around them, and by consecutive numbers. docs/decisions/0013-sections.md
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from leporello.core.records import Document, Section
from leporello.text.headings.labels import Label, is_name, label_of, name_of
from leporello.text.headings.lines import (
    ALONE,
    INDENT,
    LONGEST,
    PARAGRAPH,
    HeadingCandidate,
    TextLines,
    is_title,
    marked,
)
from leporello.text.headings.runs import joined, numbered, rank, without_headers, without_lists
from leporello.text.outline import Heading, outline

_FEW = 2  # marked headings or loaded sections; a single match may be the title, or chance
_MARKS = 40  # characters that a heading's lines may have in addition to its title
# Known names that also occur inside chapters; the other known names are siblings of chapters.
_INNER = frozenset({
    "introduction", "background", "conclusion", "conclusions", "discussion", "results", "methods",
    "methodology", "summary", "related work", "notation", "future work", "results and discussion",
    "materials and methods", "literature review", "einleitung", "einführung", "fazit",
    "zusammenfassung",
})  # fmt: skip
_SHORTEST = 4  # letters of a heading in capitals; fewer are initials
_CAPTION = re.compile(
    r"(?:fig(?:ure)?|tab(?:le)?|listing|plate|exhibit|chart|box|abb(?:ildung)?|tabelle|tableau)"
    r"\b[. ]*[\dIVX]",
    re.IGNORECASE,
)
_SCENE = re.compile(r"(?:INT|EXT|EST|I/E)[./ ]|(?:CUT|FADE|DISSOLVE|SMASH)\b")


def headings(document: Document) -> tuple[Section, ...]:
    """Returns the sections that headings open, in document order, outer ones before inner ones.

    A section begins with its heading's line and ends where the next heading of its level or above
    begins; level 1 is at the top. Sections are cached per document.
    """
    return document.memo("headings", lambda: _headings(document))


def is_bare(text: str, above: Section, below: Section) -> bool:
    """Returns whether only its heading is between a section's start and its first subsection."""
    return (
        below.level > above.level
        and below.start - above.start < len(above.title) + _MARKS
        and _letters(text[above.start : below.start]) == _letters(above.title)
    )


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _headings(document: Document) -> tuple[Section, ...]:
    if (loaded := _loaded(document)) is not None:
        return loaded
    lines = TextLines(document.text)
    detected = marked(lines)
    # A single `#` may be a comment or the document's title (decision 13).
    if len(detected) < _FEW:
        detected = _unmarked(lines)
    levels = {level: n for n, level in enumerate(sorted({h.level for h in detected}), start=1)}
    return outline([replace(h, level=levels[h.level]) for h in detected], len(document.text))


def _loaded(document: Document) -> tuple[Section, ...] | None:
    """Returns a loader's sections if each begins with its title, unlike pages and cues."""
    titled = [section for section in document.sections if section.title]
    # Pages and cues are places of a loader too, but their names are not in the text.
    for section in titled:
        end = section.start + 2 * len(section.title) + 100  # with marks and line breaks
        words = document.text[section.start : end].lstrip("# \t").split()
        if not " ".join(words).startswith(section.title):
            return None
    return document.sections if len(titled) >= _FEW else None


def _unmarked(lines: TextLines) -> list[Heading]:
    """Returns the headings of a text without markup."""
    candidates = joined(lines, without_headers(lines, [*guessed(lines)]))
    candidates = without_lists(lines, candidates)
    # Only the heaviest chain of numbers counts: a list begins at 1 again (decision 13).
    chained = numbered(candidates)
    candidates = [
        candidate
        if candidate.kind != "number" or index in chained
        else replace(candidate, kind=candidate.otherwise, label=None)
        for index, candidate in enumerate(candidates)
    ]
    # Again, since lines that lost their number may now be part of a list.
    candidates = without_lists(lines, [candidate for candidate in candidates if candidate.kind])
    ranked = [*_ranked(candidates)]
    levels = sorted({candidate.level for candidate in ranked})
    return [Heading(c.title, lines.starts[c.line], levels.index(c.level)) for c in ranked]


def _ranked(candidates: Sequence[HeadingCandidate]) -> Iterator[HeadingCandidate]:
    """Sets the levels of headings; in a text with chapters, names are their siblings or inside."""
    words = {c.label.word for c in candidates if c.kind == "word" and c.label}
    has_chapters = "chapter" in words
    styles = {c.label.style for c in candidates if c.kind == "number" and c.label}
    is_inside_chapter = False
    for candidate in candidates:
        level = rank(candidate)
        if candidate.kind == "word" and candidate.label:
            is_inside_chapter = candidate.label.word == "chapter"
            level += candidate.label.word == "appendix" and not has_chapters
        elif candidate.kind == "number" and candidate.label:
            level += "I" in styles and candidate.label.style != "I"
        elif candidate.kind == "name":
            is_inside_chapter = is_inside_chapter and name_of(candidate.title) in _INNER
            level = 11 if is_inside_chapter or not has_chapters else 10
        # In novels most lines in capitals are signs or signatures, not sections.
        elif has_chapters:
            continue
        else:
            level = 11 + (candidate.level if candidate.kind == "title" else 0)
        yield replace(candidate, level=level)


def guessed(lines: TextLines) -> Iterator[HeadingCandidate]:
    """Yields the lines that look like headings, judging by their words and neighbouring lines."""
    for line, text in enumerate(lines.texts):
        if not text or len(text) > LONGEST or text[0].islower() or line in lines.fenced:
            continue
        if (text[0].isalnum() or text[0] in "“¿¡") and (candidate := _guessed(lines, line, text)):
            yield candidate


def _guessed(lines: TextLines, line: int, text: str) -> HeadingCandidate | None:
    if not lines.is_before_clear(line) or _CAPTION.match(text) or lines.is_listed(line):
        return None
    kind = _kind(lines, line, text)
    label = label_of(text)
    if label and (labelled := _labelled(lines, line, label)):
        return replace(labelled, otherwise=kind, level=_depth(lines, line))
    return (
        HeadingCandidate(line, text, kind, _depth(lines, line), None, lines.apart(line))
        if kind
        else None
    )


def _kind(lines: TextLines, line: int, text: str) -> str:
    """Returns the kind of heading that a line looks like without its number; empty if none."""
    if is_name(text) and text[-1] not in ",;!?":
        return "name"
    # Without a number or a known name, only blank lines show that a line is not part of a sentence.
    if lines.at(line - 1) or not is_title(text):
        return ""
    if _is_shouted(text) and lines.indents[line] <= INDENT and _heads_text(lines, line):
        return "caps"
    below = len(lines.at(line + 1))
    return "title" if lines.has_long_paragraphs and (not below or 2 * below > PARAGRAPH) else ""


def _depth(lines: TextLines, line: int) -> float:
    """Returns the depth of a heading by its indentation, or by `A ::: B` in it."""
    return lines.indents[line] + lines.texts[line].count(" ::: ") / 10


def _labelled(lines: TextLines, line: int, label: Label) -> HeadingCandidate | None:
    text = lines.texts[line]
    is_plausible = is_title(label.title) if label.title else bool(label.word or label.style == "I")
    if not is_plausible or not (lines.is_after_clear(line) or is_name(label.title)):
        return None
    apart = lines.apart(line)
    if label.word:
        return HeadingCandidate(line, text, "word", 0, label, apart) if apart else None
    is_bare = not label.title or (label.style != "1" and label.depth == 1)
    if lines.indents[line] > INDENT * (4 if is_bare else 1) or (is_bare and apart < ALONE):
        return None
    return HeadingCandidate(line, text, "number", 0, label, apart)


def _is_shouted(text: str) -> bool:
    """Returns whether a line is in capitals and is not a scene heading of a screenplay."""
    letters = sum(character.isalpha() for character in text)
    enough = letters >= _SHORTEST and 2 * letters > len(text)
    return enough and text[0].isalnum() and text.isupper() and not _SCENE.match(text)


def _heads_text(lines: TextLines, line: int) -> bool:
    """Returns whether a blank line or more indented text follows, as in a manual page."""
    below = line + 1
    return not lines.at(below) or (
        lines.indents[below] > lines.indents[line] and lines.at(below)[:1] != "("
    )
