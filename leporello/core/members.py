"""A collection is one document: the texts of its files one after the other, and which is where."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import TypeVar

from leporello.core.records import Document, Loss, Member, Place, Section, Span

_GAP = "\n\n"  # between two files, in none of them
_START = attrgetter("start")
_Stretch = TypeVar("_Stretch", Section, Place)


def join(
    documents: Sequence[Document],
    id: str,  # noqa: A002 -- the record's own word
    losses: Sequence[Loss] = (),
    notes: Sequence[str] = (),
) -> Document:
    """Returns documents as one, each a member under its id, with all that is told of it.

    Args:
        documents: The documents; what is derived from each is kept by its own content.
        id: Id of the collection.
        losses: Losses of the collection itself, before those of its members.
        notes: Notes of the collection itself, likewise.
    """
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
        losses=(*losses, *(_placed(loss, d.id) for d in documents for loss in d.losses)),
        notes=(*notes, *(f"{d.id}: {note}" for d in documents for note in d.notes)),
        members=tuple(members),
    )


def member_at(document: Document, offset: int) -> int:
    """Returns the number of the member in which a character stands; of a gap, that before it."""
    return max(0, bisect_right(document.members, offset, key=_START) - 1)


def member_document(document: Document, number: int) -> Document:
    """Returns a member as the document that it was; its losses and notes stay with the whole."""
    member = document.members[number]

    def inside(stretches: Sequence[_Stretch]) -> tuple[_Stretch, ...]:
        first = bisect_left(stretches, member.start, key=_START)
        last = bisect_right(stretches, member.end, lo=first, key=_START)
        return tuple(_shifted(stretch, -member.start) for stretch in stretches[first:last])

    own = Document(
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
    own.memo("sha256", lambda: member.sha256)
    if document.cache:
        own.use_cache(document.cache)
    return own


def _shifted(stretch: _Stretch, by: int) -> _Stretch:
    start, end = stretch.start + by, stretch.end + by
    if type(stretch) is Place:  # many: `replace` takes ten times as long
        return type(stretch)(stretch.name, start, end)
    return dataclasses.replace(stretch, start=start, end=end)


def _placed(loss: Loss, name: str) -> Loss:
    return dataclasses.replace(loss, place=f"{name} {loss.place}".strip())
