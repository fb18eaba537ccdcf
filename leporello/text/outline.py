"""Sections and joined texts of files, and names of places for people."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise, takewhile
from operator import attrgetter
from typing import Any, Literal

from leporello.core.members import member_at
from leporello.core.records import Document, Loss, Place, Section, Span


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that opens a section at character `start`; level 1 at the top."""

    title: str
    start: int
    level: int


def outline(headings: Sequence[Heading], end: int) -> tuple[Section, ...]:
    """Returns one section per heading, up to the next heading of its level or above."""
    ends = [end] * len(headings)
    open_: list[int] = []
    for i, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            ends[open_.pop()] = heading.start
        open_.append(i)
    return tuple(
        Section(heading.title, heading.start, stop, heading.level)
        for heading, stop in zip(headings, ends, strict=True)
    )


def tile(texts: Iterable[str], separator: str) -> tuple[str, tuple[Span, ...]]:
    """Joins texts and returns the span of each, including the separator after it."""
    parts = [*texts]
    starts = [0, *accumulate(len(part) + len(separator) for part in parts)]
    # No separator follows the last part.
    starts[-1] -= len(separator) if parts else 0
    return separator.join(parts), tuple(Span(*ends) for ends in pairwise(starts))


def heading(document: Document, offset: int) -> str:
    """Returns the titles of the sections around a character, outermost first: `Part II > 3`."""
    return " > ".join(section.title for section in _around(document, "sections", offset))


def place_of_span(document: Document, span: Span) -> str:
    """Returns a span's location for people: `p. 14 to p. 15, Part II > Chapter 3`."""
    return cited(document, span) if document.members else _place(document, span)


def cited(document: Document, span: Span) -> str:
    """Returns a span's file and location for people: `report.pdf p. 14`.

    Without places and headings the location counts characters: `a.txt characters 12–40`.
    """
    name, start, end, beyond = document.id, 0, span.end, ""
    if document.members:
        ends = (span.start, max(span.start, span.end - 1))
        first, last = (document.members[member_at(document, at)] for at in ends)
        name, start, end = first.name, first.start, max(span.start, min(span.end, first.end))
        beyond = f" to {last.name}" if last is not first else ""
    place = _place(document, Span(span.start, end))
    return f"{name} {place or f'characters {span.start - start}–{end - start}'}{beyond}"


def _place(document: Document, span: Span) -> str:
    ends = (span.start, max(span.end - 1, span.start))
    names = (" ".join(place.name for place in _around(document, "places", end)) for end in ends)
    places = " to ".join(filter(None, dict.fromkeys(names)))
    first, last = ([s.title for s in _around(document, "sections", end)] for end in ends)
    # Shared headings once: `Part II > 3 to 4`, not both complete paths.
    shared = len([*takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))])
    remaining = last[shared:] if first else last
    headings = " to ".join(filter(None, map(" > ".join, (first, remaining))))
    return ", ".join(filter(None, (places, headings)))


def _around(document: Document, kind: Literal["places", "sections"], offset: int) -> list[Any]:
    """Returns the places or sections around a character, outermost first."""
    ordered, outer = document.memo(("around", kind), partial(_nested, getattr(document, kind)))
    # A spreadsheet has up to 100,000 places, too many to search one by one for each passage.
    number, around = bisect_right(ordered, offset, key=attrgetter("start")) - 1, []
    while number >= 0:
        if offset < ordered[number].end:
            around.append(ordered[number])
        number = outer[number]
    return around[::-1]


def _nested(spans: Sequence[Place | Section]) -> tuple[Sequence[Place | Section], list[int]]:
    """Sorts spans, and returns for each the index of the span that may enclose it, or -1."""
    ordered = sorted(spans, key=attrgetter("start"))
    open_, outer = [-1], list[int]()
    for number, span in enumerate(ordered):
        while open_[-1] >= 0 and ordered[open_[-1]].end <= span.start:
            open_.pop()
        outer.append(open_[-1])
        open_.append(number)
    return ordered, outer


def joined(parts: Iterable[tuple[str, Document]], separator: str = "\n\n") -> Document:
    """Joins texts of a file; each text with a name is the place around its inner places."""
    parts = [*parts]
    # A place without text could not be cited, and two would begin at one character.
    with_text = [(name, part) for name, part in parts if part.text.strip()]
    text, spans = tile((part.text for _, part in with_text), separator)
    sections: list[Section] = []
    places: list[Place] = []
    losses: list[Loss] = []
    for name, part in parts:
        # From all parts, also those without text: a lost chapter has nothing else to show.
        losses += (replace(loss, place=f"{name} {loss.place}".strip()) for loss in part.losses)
    for (name, part), span in zip(with_text, spans, strict=True):
        offset = span.start
        places += [Place(name, offset, span.end)] if name else []
        places += (Place(p.name, p.start + offset, p.end + offset) for p in part.places)
        sections += (replace(s, start=s.start + offset, end=s.end + offset) for s in part.sections)
    notes = dict.fromkeys(note for _, part in parts for note in part.notes)
    return Document("", text, "", (*sections,), (), (*places,), (*losses,), (*notes,))
