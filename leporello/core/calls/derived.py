"""Data derived from a document, such as chunks, passages and indexes, computed once and cached.

A value is looked up in the document's memory, then in its cache, and computed only if both lack it.
Its key in memory is made from the stage's parameters, its key in the cache from everything that it
depends on. A value that no file can hold, or that is made by a stage without a fingerprint, stays
in memory.

A collection's chunks are cached per file by the file's content, and so are the segments from which
a retriever with `segment` and `join` makes its index. If one file changes, only that file is
divided and indexed again; other retrievers index all chunks at once.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

from leporello.core.calls.memory import (
    CacheKey,
    Codec,
    Fingerprint,
    Index,
    Offsets,
    canonical,
    memo_key,
    read_only,
)
from leporello.core.members import member_document
from leporello.core.notes import collect_notes, note
from leporello.core.passages import Passage, content_hash, from_table, to_table
from leporello.core.records import JSON, Chunk, Document

_INDEX: Codec[Any] = Codec("index", lambda value: value, lambda value: value)
_SEGMENT = dataclasses.replace(_INDEX, kind="segment")  # one file's part of a collection's index


@dataclass(frozen=True, slots=True)
class _NotedChunks:
    """Chunks or passages of a document, and the notes of the stage that made them."""

    chunks: tuple[Chunk, ...]
    notes: Sequence[str]


def chunks_of(
    document: Document,
    chunker: object,
    question: str | None,
    divide: Callable[[Document], Iterable[Chunk]],
    within: tuple[Document, int] | None = None,
) -> tuple[Chunk, ...]:
    """Returns the chunks of a document; `divide` makes those of a document, or of a single file.

    `question` is None if the chunker does not take it. `within` is a collection that contains the
    document, with the document's offset: the chunks are then those of the collection.
    """
    collection, offset = within or (document, 0)

    def key(fingerprint: Fingerprint) -> CacheKey | None:
        if document.members or (identity := fingerprint(chunker, ())) is None:
            return None
        extra: dict[str, JSON] = {} if question is None else {"question": question}
        return {"chunker": {**identity}, "document": content_of(document), **extra}

    def divide_files() -> Iterator[Chunk]:
        for number, member in enumerate(document.members):
            file = member_document(document, number)
            # Kept now, since the segment's key would have to build the file's document again.
            document.memo(("content", number), partial(content_of, file))
            yield from chunks_of(file, chunker, question, divide, (document, member.start))

    def divide_document() -> Iterable[Chunk]:
        chunks = divide(document)
        if within is None:
            return chunks
        return (Chunk(collection, chunk.start + offset, chunk.end + offset) for chunk in chunks)

    make = divide_files if document.members else divide_document
    codec, memo = _chunk_codec(collection, offset), (memo_key(chunker), question)
    return _noted(document, codec, memo, key, make)


def passages_of(
    chunks: Sequence[Chunk], makers: Sequence[object], make: Callable[[], Iterable[Chunk]]
) -> tuple[Chunk, ...]:
    """Returns the passages of chunks that an enricher and its readers, the `makers`, make."""
    document = chunks[0].document

    def key(fingerprint: Fingerprint) -> CacheKey | None:
        fingerprints = [fingerprint(stage, ()) for stage in makers]
        enricher, *readers = ({**(entry or {})} for entry in fingerprints)
        if None in fingerprints:
            return None
        stages: CacheKey = {"enricher": enricher, "readers": [*readers]}
        return {**stages, **_chunk_fields(document, chunks)}

    memo = (*map(memo_key, makers), spans_hash(document, chunks))
    return _noted(document, _passage_codec(document), memo, key, make)


def _noted(
    document: Document,
    codec: Codec[_NotedChunks],
    memo: Hashable,
    key: Callable[[Fingerprint], CacheKey | None],
    make: Callable[[], Iterable[Chunk]],
) -> tuple[Chunk, ...]:
    """Returns chunks or passages; the notes of their stage are reported in any case."""

    def compute() -> _NotedChunks:
        with collect_notes() as notes:
            return _NotedChunks(tuple(make()), notes)

    noted = document.derived(codec, memo, key, compute)
    for text in noted.notes:
        note(text)
    return noted.chunks


def index(
    document: Document,
    retriever: Any,  # noqa: ANN401 -- any class with a method `index`
    chunks: Sequence[Chunk],
) -> Any:  # noqa: ANN401 -- plug-ins may return any object
    """Returns a retriever's index of chunks, with read-only arrays.

    Retrievers that differ only in the parameters listed in their class's `search_only` share it.
    The index of a collection is joined from segments if possible. A chunk of another document is a
    ValueError.
    """

    def make() -> Any:  # noqa: ANN401 -- `index` and `join` may return any object
        if (parts := _parts(document, retriever, chunks)) is None:
            return read_only(retriever.index(chunks=chunks))
        return read_only(retriever.join([_segment(document, retriever, *part) for part in parts]))

    def key(fingerprint: Fingerprint) -> CacheKey | None:
        if (identity := fingerprint(retriever, without)) is None:
            return None
        # By the spans, not by the chunker: chunkers with the same chunks share an index.
        return {"retriever": {**identity}, **_chunk_fields(document, chunks)}

    without = search_only(retriever)
    memo = (memo_key(retriever, without), spans_hash(document, chunks))
    return document.derived(_INDEX, memo, key, make)


def _parts(
    document: Document, retriever: object, chunks: Sequence[Chunk]
) -> list[tuple[int, Offsets]] | None:
    """Returns members' numbers with their chunks' spans; None if an index has no segments."""
    import numpy as np

    has_segments = all(hasattr(retriever, name) for name in ("segment", "join"))
    is_collection = document.members and not any(isinstance(chunk, Passage) for chunk in chunks)
    if not has_segments or not is_collection:
        return None
    offsets = spans(chunks)
    # Another order would assign chunks to the wrong files; a plug-in chunker may use any.
    if (np.diff(offsets[:, 0]) < 0).any():
        return None
    bounds = np.searchsorted(offsets[:, 0], [member.start for member in document.members])
    parts = zip(document.members, np.split(offsets, bounds[1:]), strict=True)
    numbered = ((number, part - member.start) for number, (member, part) in enumerate(parts))
    return [(number, part) for number, part in numbered if len(part)] or None


def _segment(document: Document, retriever: Any, number: int, offsets: Offsets) -> Any:  # noqa: ANN401 -- plug-ins
    def make() -> Any:  # noqa: ANN401 -- plug-ins
        file = member_document(document, number)
        # Chunks of the file alone, so a segment is equal in all collections that contain the file.
        return retriever.segment([file.chunk(*span) for span in offsets.tolist()])

    def key(fingerprint: Fingerprint) -> CacheKey | None:
        if (identity := fingerprint(retriever, without)) is None:
            return None
        content = document.memo(
            ("content", number), lambda: content_of(member_document(document, number))
        )
        # Relative to the file: a new file before it moves all offsets, but not these.
        return {"retriever": {**identity}, "document": content, "chunks": _hash(offsets)}

    # Parameters that segments do not depend on, such as BM25's k1 and b.
    without = (*search_only(retriever), *getattr(type(retriever), "join_only", ()))
    memo = memo_key(retriever, without), number, _hash(offsets)
    return document.derived(_SEGMENT, memo, key, make)


def _chunk_fields(document: Document, chunks: Sequence[Chunk]) -> dict[str, JSON]:
    return {"document": content_of(document), "chunks": spans_hash(document, chunks)}


def _chunk_codec(document: Document, offset: int) -> Codec[_NotedChunks]:
    """Returns the codec of chunks; packed spans are relative to an offset in the document."""

    def pack(noted: _NotedChunks) -> Index:
        notes: Index = {"notes": [*noted.notes]} if noted.notes else {}
        return {"spans": spans(noted.chunks) - offset, **notes}

    def unpack(packed: Index) -> _NotedChunks:
        relative: Any = packed["spans"]
        notes: Any = packed.get("notes", ())
        # No check: the spans were checked before they were packed, and the cache verifies files.
        bounds = (relative + offset).T.tolist()
        return _NotedChunks(tuple(map(Chunk, repeat(document), *bounds)), notes)

    return Codec("chunks", pack, unpack)


def _passage_codec(document: Document) -> Codec[_NotedChunks]:
    def pack(noted: _NotedChunks) -> Index:
        return {**to_table(noted.chunks), "notes": [*noted.notes]}

    def unpack(packed: Index) -> _NotedChunks:
        table: Any = packed
        return _NotedChunks(from_table(document, table), table["notes"])

    return Codec("passages", pack, unpack)


def spans(chunks: Sequence[Chunk]) -> Offsets:
    """Returns the spans of chunks, shape (chunks, 2)."""
    import numpy as np

    spans = [(chunk.start, chunk.end) for chunk in chunks]
    return np.array(spans, dtype="<i8").reshape(-1, 2)


def spans_hash(document: Document, chunks: Sequence[Chunk]) -> str:
    """Returns a hash of the spans of chunks and the texts of passages; cached for a tuple."""

    def compute_hash() -> tuple[Sequence[Chunk], str]:
        for chunk in chunks:
            if chunk.document is not document:
                raise ValueError(
                    f"an index for document {document.id!r} cannot be made from a chunk of document"
                    f" {chunk.document.id!r}"
                )
        texts = content_hash(chunks).encode()  # empty for chunks: the document has their text
        return chunks, _hash(spans(chunks), texts)

    if not isinstance(chunks, tuple):
        return compute_hash()[1]
    # The memo holds the tuple, so its id cannot be used again for another one.
    return document.memo(("spans", id(chunks)), compute_hash)[1]


def _hash(offsets: Offsets, more: bytes = b"") -> str:
    return hashlib.sha256(offsets.tobytes() + more).hexdigest()


def content_of(document: Document) -> JSON:
    """Returns hashes of everything in a document that a stage can see."""

    def compute_hashes() -> JSON:
        # Chunkers see sections and parts, so two files of equal text may have different chunks.
        sections = [dataclasses.astuple(section) for section in document.sections]
        parts = [(part.start, part.end) for part in document.parts]
        return {
            "id": document.id,
            "text": document.sha256,
            "title": document.title,
            "sections": _digest(sections),
            "parts": _digest(parts),
        }

    return document.memo("content", compute_hashes)


def _digest(values: Sequence[Any]) -> JSON:
    text = canonical({"things": [*values]})
    return hashlib.sha256(text.encode()).hexdigest()[:32] if values else None


def search_only(retriever: object) -> tuple[str, ...]:
    """Returns the parameters that a retriever's index does not depend on."""
    names: tuple[str, ...] = getattr(type(retriever), "search_only", ())
    return names
