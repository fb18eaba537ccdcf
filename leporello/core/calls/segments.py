"""What is derived from a collection: made a file at a time, each file's part by its own content.

So of a collection of which one file has changed, only that file is divided and indexed again. A
retriever that offers `segment` and `join` has its index put together of segments, one a file; any
other has one of all chunks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from leporello.core.calls import derived
from leporello.core.calls.memory import CacheKey, Fingerprint, memo_key
from leporello.core.members import member_document
from leporello.core.notes import collect_notes, note
from leporello.core.passages import Passage
from leporello.core.records import Chunk, Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def chunks(
    document: Document,
    chunker: object,
    question: str | None,
    divide: Callable[[Document], Sequence[Chunk]],
) -> tuple[Chunk, ...]:
    """Returns the chunks of a collection, those of each file.

    Takes what `derived.chunks` does; `divide` is given each file.
    """

    def make() -> tuple[tuple[Chunk, ...], list[str]]:
        every: list[Chunk] = []
        with collect_notes() as notes:
            for number, member in enumerate(document.members):
                own = member_document(document, number)
                document.memo(("content", number), partial(derived.content_of, own))
                make_own, within = partial(divide, own), (document, member.start)
                every += derived.chunks(own, chunker, question, make_own, within)
        return tuple(every), notes

    made, notes = document.memo(("chunks", memo_key(chunker), question), make)
    for text in dict.fromkeys(notes):
        note(text)
    return made


def cached_chunks(
    document: Document, chunker: object, question: str | None
) -> tuple[Chunk, ...] | None:
    """Returns a document's chunks if its cache has them all."""
    if not document.members:
        return derived.cached_chunks(document, chunker, question)
    every: list[Chunk] = []
    for number, member in enumerate(document.members):
        own = member_document(document, number)
        within = (document, member.start)
        if (found := derived.cached_chunks(own, chunker, question, within)) is None:
            return None
        every += found
    return tuple(every)


def has_segments(kind: type) -> bool:
    """Says whether the index of a retriever of a class can be put together of segments."""
    return all(callable(getattr(kind, name, None)) for name in ("segment", "join"))


def index(document: Document, retriever: Any, given: Sequence[Chunk]) -> Any:  # noqa: ANN401 -- as `derived.index`
    """Returns a retriever's index of the chunks of a collection, combined from files' segments.

    Raises:
        ValueError: A chunk of another document.
    """
    if not has_segments(type(retriever)):
        return derived.index(document, retriever, given)

    def make() -> Any:  # noqa: ANN401 -- whatever a retriever makes of segments
        if (parts := _parts(document, given)) is None:
            return retriever.index(chunks=given)
        return retriever.join([_segment(document, retriever, *part) for part in parts])

    return derived.index(document, retriever, given, make)


def index_keys(
    document: Document, retriever: object, given: Sequence[Chunk], fingerprint: Fingerprint
) -> list[tuple[str, CacheKey | None]]:
    """Returns kind and key of all that an index of chunks is put together of."""
    segmented = document.members and has_segments(type(retriever))
    if not segmented or (parts := _parts(document, given)) is None:
        return [("index", derived.index_key(document, retriever, given, fingerprint))]
    return [("segment", _key(document, retriever, *part, fingerprint)) for part in parts]


def _parts(
    document: Document, given: Sequence[Chunk]
) -> list[tuple[int, NDArray[np.int64]]] | None:
    """Returns members' numbers and chunks' spans; None if these come in no order, or none do.

    None, too, if any is a passage: a file's own chunks are made without others'.
    """
    import numpy as np

    if any(isinstance(chunk, Passage) for chunk in given):
        return None
    spans = derived.spans(given)
    if (np.diff(spans[:, 0]) < 0).any():
        return None
    bounds = np.searchsorted(spans[:, 0], [member.start for member in document.members])
    parts = zip(document.members, np.split(spans, bounds[1:]), strict=True)
    numbered = ((number, own - member.start) for number, (member, own) in enumerate(parts))
    return [(number, own) for number, own in numbered if len(own)] or None


def _segment(document: Document, retriever: Any, number: int, spans: NDArray[np.int64]) -> Any:  # noqa: ANN401 -- a stage; what it makes
    """Returns a member's segment, from the cache where it has it."""
    cache = document.cache
    key = _key(document, retriever, number, spans, cache.fingerprint) if cache else None
    if cache and key and (kept := cache.get("segment", key)) is not None:
        return kept
    own = member_document(document, number)
    made = retriever.segment([own.chunk(*span) for span in spans.tolist()])
    if cache and key:
        cache.put("segment", key, made)
    return made


def _key(
    document: Document,
    retriever: object,
    number: int,
    spans: NDArray[np.int64],
    fingerprint: Fingerprint,
) -> CacheKey | None:
    """Returns what a member's segment is made from; None if that cannot be told."""
    join_only = getattr(type(retriever), "join_only", ())
    known = fingerprint(retriever, (*derived.search_only(retriever), *join_only))
    if known is None:
        return None
    content = document.memo(
        ("content", number), lambda: derived.content_of(member_document(document, number))
    )
    stands = hashlib.sha256(spans.tobytes()).hexdigest()
    return {"retriever": {**known}, "document": content, "chunks": stands}
