"""Joins the files of a collection into one document, and returns its members as documents."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TypeVar

from leporello.core.records import Document, Loss, Member, Place, Section, Span

# An empty line, so no sentence or token can go across two files.
_GAP = "\n\n"  # between two files, part of neither
_START = attrgetter("start")
_Range = TypeVar("_Range", Section, Place)


def join(
    documents: Sequence[Document],
    id: str,  # noqa: A002 -- the name of the record's field
    losses: Sequence[Loss] = (),
    notes: Sequence[str] = (),
) -> Document:
    """Returns a document with the given documents as members, after its own losses and notes."""
    start, members = 0, list[Member]()
    for document in documents:
        end = start + len(document.text)
        members.append(Member(document.id, start, end, document.title, document.sha256))
        start = end + len(_GAP)
    pairs = [*zip(members, documents, strict=True)]
    return Document(
        id,
        _GAP.join(document.text for document in documents),
        sections=tuple(_shifted(s, m.start) for m, d in pairs for s in d.sections),
        parts=tuple(Span(p.start + m.start, p.end + m.start) for m, d in pairs for p in d.parts),
        places=tuple(_shifted(p, m.start) for m, d in pairs for p in d.places),
        losses=(
            *losses,
            *(replace(x, place=f"{d.id} {x.place}".strip()) for d in documents for x in d.losses),
        ),
        notes=(*notes, *(f"{d.id}: {note}" for d in documents for note in d.notes)),
        members=tuple(members),
    )


def member_at(document: Document, offset: int) -> int:
    """Returns the number of the member that contains a character, or of the member before it."""
    return max(0, bisect_right(document.members, offset, key=_START) - 1)


def member_document(document: Document, number: int) -> Document:
    """Returns a member as a document of its own, without its losses and notes."""
    member = document.members[number]

    def inside(ranges: Sequence[_Range]) -> tuple[_Range, ...]:
        first = bisect_left(ranges, member.start, key=_START)
        last = bisect_right(ranges, member.end, lo=first, key=_START)
        return tuple(_shifted(entry, -member.start) for entry in ranges[first:last])

    file = Document(
        member.name,
        document.text[member.start : member.end],
        member.title,
        inside(document.sections),
        tuple(
            Span(part.start - member.start, part.end - member.start)
            for part in document.parts
            if member.start <= part.start and part.end <= member.end
        ),
        inside(document.places),
    )
    # Its hash is known, and finds chunks and index of the file in the cache.
    file.memo("sha256", lambda: member.sha256)
    if document.cache:
        file.use_cache(document.cache)
    return file


def _shifted(entry: _Range, offset: int) -> _Range:
    start, end = entry.start + offset, entry.end + offset
    if type(entry) is Place:  # places are many, and `replace` takes ten times as long
        return type(entry)(entry.name, start, end)
    return replace(entry, start=start, end=end)
