"""Data derived from a document, such as chunks, passages and indexes, computed once and cached.

A value is looked up in the document's memory, then in its cache, and computed only if both lack it.
Its key in memory is made from the stage's parameters, its key in the cache from everything that it
depends on. A value that no file can hold, or that is made by a stage without a fingerprint, stays
in memory.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Sequence
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
from leporello.core.notes import collect_notes, note
from leporello.core.passages import content_hash, from_table, to_table
from leporello.core.records import JSON, Chunk, Document


@dataclass(frozen=True, slots=True)
class _NotedChunks:
    """Chunks or passages of a document, and the notes of the stage that made them."""

    chunks: tuple[Chunk, ...]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class DerivedChunks:
    """Chunks or passages of a document, in its memory and its cache."""

    document: Document
    codec: Codec[_NotedChunks]
    memo: Hashable  # key in memory
    key: Callable[[Fingerprint], CacheKey | None]  # in a cache; None if a stage has no fingerprint

    def get(self, make: Callable[[], Sequence[Chunk]]) -> tuple[Chunk, ...]:
        """Returns them, computed if necessary; the stage's notes are reported in any case."""

        def compute() -> _NotedChunks:
            with collect_notes() as notes:
                return _NotedChunks(tuple(make()), notes)

        noted = self.document.derived(self.codec, self.memo, self.key, compute)
        for text in noted.notes:
            note(text)
        return noted.chunks

    def cached(self) -> tuple[Chunk, ...] | None:
        """Returns them if the document's cache has them."""
        cache = self.document.cache
        key = self.key(cache.fingerprint) if cache else None
        entry = cache.get(self.codec.kind, key) if cache and key else None
        return None if entry is None else self.codec.unpack(entry).chunks


def chunks_of(
    document: Document,
    chunker: object,
    question: str | None,
    within: tuple[Document, int] | None = None,
) -> DerivedChunks:
    """Returns the chunks of a document.

    `question` is None if the chunker does not take it. `within` is a collection that contains the
    document, with the document's offset: the chunks are then those of the collection.
    """

    def key(fingerprint: Fingerprint) -> CacheKey | None:
        if (identity := fingerprint(chunker, ())) is None:
            return None
        extra: dict[str, JSON] = {} if question is None else {"question": question}
        return {"chunker": {**identity}, "document": content_of(document), **extra}

    codec = _chunk_codec(*(within or (document, 0)))
    return DerivedChunks(document, codec, (memo_key(chunker), question), key)


def passages_of(chunks: Sequence[Chunk], makers: Sequence[object]) -> DerivedChunks:
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
    return DerivedChunks(document, _passage_codec(document), memo, key)


def index(
    document: Document,
    retriever: Any,  # noqa: ANN401 -- any class with a method `index`
    chunks: Sequence[Chunk],
    make: Callable[[], Any] | None = None,
) -> Any:  # noqa: ANN401 -- plug-ins may return any object
    """Returns a retriever's index of chunks, with read-only arrays.

    Retrievers that differ only in the parameters listed in their class's `search_only` share it.
    A function `make` replaces the retriever's `index`. A chunk of another document is a ValueError.
    """
    codec: Codec[Any] = Codec("index", lambda value: value, lambda value: value)
    key = partial(index_key, document, retriever, chunks)
    memo = (memo_key(retriever, search_only(retriever)), spans_hash(document, chunks))
    make = make or partial(retriever.index, chunks=chunks)
    return document.derived(codec, memo, key, lambda: read_only(make()))


def index_key(
    document: Document, retriever: object, chunks: Sequence[Chunk], fingerprint: Fingerprint
) -> CacheKey | None:
    """Returns the cache key of an `index`; None if the retriever has no fingerprint."""
    identity = fingerprint(retriever, search_only(retriever))
    if identity is None:
        return None
    # By the spans, not by the chunker: chunkers with the same chunks share an index.
    return {"retriever": {**identity}, **_chunk_fields(document, chunks)}


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
        return chunks, hashlib.sha256(spans(chunks).tobytes() + texts).hexdigest()

    if not isinstance(chunks, tuple):
        return compute_hash()[1]
    # The memo holds the tuple, so its id cannot be used again for another one.
    return document.memo(("spans", id(chunks)), compute_hash)[1]


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
