"""Derived data of a collection, cached per file by the file's content.

If one file of a collection changes, only that file is divided and indexed again. The index of a
retriever with `segment` and `join` is joined from one segment per file; other retrievers index all
chunks at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from leporello.core.calls import derived
from leporello.core.calls.memory import CacheKey, Fingerprint, Offsets, memo_key
from leporello.core.members import member_document
from leporello.core.notes import collect_notes, note
from leporello.core.passages import Passage
from leporello.core.records import Chunk, Document


def chunks(
    document: Document,
    chunker: object,
    question: str | None,
    divide: Callable[[Document], Sequence[Chunk]],
) -> tuple[Chunk, ...]:
    """Returns the chunks of all files of a collection; `divide` is called with each file."""

    def divide_file(file: Document, offset: int) -> list[Chunk]:
        parts = divide(file)
        return [document.chunk(part.start + offset, part.end + offset) for part in parts]

    def make() -> tuple[tuple[Chunk, ...], list[str]]:
        chunks: list[Chunk] = []
        with collect_notes() as notes:
            for number, of_file in enumerate(_by_file(document, chunker, question)):
                file = of_file.document
                # Kept now, since the segment's key would have to build the file's document again.
                document.memo(("content", number), partial(derived.content_of, file))
                chunks += of_file.get(partial(divide_file, file, document.members[number].start))
        return tuple(chunks), notes

    result, notes = document.memo(("chunks", memo_key(chunker), question), make)
    # Each note once: a chunker gives the same note for each of a thousand files.
    for text in dict.fromkeys(notes):
        note(text)
    return result


def cached_chunks(
    document: Document, chunker: object, question: str | None
) -> tuple[Chunk, ...] | None:
    """Returns a document's chunks if its cache has them all."""
    if not document.members:
        return derived.chunks_of(document, chunker, question).cached()
    chunks: list[Chunk] = []
    for of_file in _by_file(document, chunker, question):
        if (file_chunks := of_file.cached()) is None:
            return None
        chunks += file_chunks
    return tuple(chunks)


def _by_file(
    document: Document, chunker: object, question: str | None
) -> Iterator[derived.DerivedChunks]:
    for number, member in enumerate(document.members):
        file = member_document(document, number)
        yield derived.chunks_of(file, chunker, question, (document, member.start))


def has_segments(kind: type) -> bool:
    """Returns whether a retriever's class can join its index from segments."""
    return all(callable(getattr(kind, name, None)) for name in ("segment", "join"))


def index(document: Document, retriever: Any, chunks: Sequence[Chunk]) -> Any:  # noqa: ANN401 -- as `derived.index`
    """Returns a retriever's index of a collection's chunks, joined from segments if possible."""
    if not has_segments(type(retriever)):
        return derived.index(document, retriever, chunks)

    def make() -> Any:  # noqa: ANN401 -- `join` may return any object
        if (parts := _parts(document, chunks)) is None:
            return retriever.index(chunks=chunks)
        return retriever.join([_segment(document, retriever, *part) for part in parts])

    return derived.index(document, retriever, chunks, make)


def index_keys(
    document: Document, retriever: object, chunks: Sequence[Chunk], fingerprint: Fingerprint
) -> list[tuple[str, CacheKey | None]]:
    """Returns kind and key of every cache entry that an index of chunks is made from."""
    segmented = document.members and has_segments(type(retriever))
    if not segmented or (parts := _parts(document, chunks)) is None:
        return [("index", derived.index_key(document, retriever, chunks, fingerprint))]
    return [("segment", _key(document, retriever, *part, fingerprint)) for part in parts]


def _parts(document: Document, chunks: Sequence[Chunk]) -> list[tuple[int, Offsets]] | None:
    """Returns members' numbers with their chunks' spans; None for passages or unsorted chunks."""
    import numpy as np

    if any(isinstance(chunk, Passage) for chunk in chunks):
        return None
    spans = derived.spans(chunks)
    # Another order would assign chunks to the wrong files; a plug-in chunker may use any.
    if (np.diff(spans[:, 0]) < 0).any():
        return None
    bounds = np.searchsorted(spans[:, 0], [member.start for member in document.members])
    parts = zip(document.members, np.split(spans, bounds[1:]), strict=True)
    numbered = ((number, part - member.start) for number, (member, part) in enumerate(parts))
    return [(number, part) for number, part in numbered if len(part)] or None


def _segment(document: Document, retriever: Any, number: int, spans: Offsets) -> Any:  # noqa: ANN401 -- plug-ins
    cache = document.cache
    key = _key(document, retriever, number, spans, cache.fingerprint) if cache else None
    if cache and key and (cached := cache.get("segment", key)) is not None:
        return cached
    file = member_document(document, number)
    # Chunks of the file alone, so the segment is equal in every collection that contains the file.
    segment = retriever.segment([file.chunk(*span) for span in spans.tolist()])
    if cache and key:
        cache.put("segment", key, segment)
    return segment


def _key(
    document: Document, retriever: object, number: int, spans: Offsets, fingerprint: Fingerprint
) -> CacheKey | None:
    # A sweep over BM25's k1 and b shares all segments, which contain only counts.
    join_only = getattr(type(retriever), "join_only", ())
    identity = fingerprint(retriever, (*derived.search_only(retriever), *join_only))
    if identity is None:
        return None
    content = document.memo(
        ("content", number), lambda: derived.content_of(member_document(document, number))
    )
    # Relative to the file: a new file before it moves all offsets, but not these.
    spans_hash = hashlib.sha256(spans.tobytes()).hexdigest()
    return {"retriever": {**identity}, "document": content, "chunks": spans_hash}
