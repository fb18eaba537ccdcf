"""What is derived from a document: tokens, chunks, indexes. Each is made once.

It is looked for in the document's memory, then in its cache, and only then computed. In memory it
is known by the stage's parameters; in a cache by a key, which names everything that it was made
from. What cannot be kept in a file, or is made by a stage whose fingerprint cannot be told, stays
in memory.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from leporello.core.calls.memory import (
    CacheKey,
    Codec,
    Fingerprint,
    Index,
    canonical,
    memo_key,
    read_only,
)
from leporello.core.notes import collect_notes, note
from leporello.core.passages import content_hash, from_table, to_table
from leporello.core.records import JSON, Chunk, Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class _Divided:
    """A document's chunks, and what the chunker noted."""

    chunks: tuple[Chunk, ...]
    notes: Sequence[str]


def chunks(
    document: Document,
    chunker: object,
    question: str | None,
    divide: Callable[[], Sequence[Chunk]],
    within: tuple[Document, int] | None = None,
) -> tuple[Chunk, ...]:
    """Returns a document's chunks; what the chunker notes is noted each time.

    Args:
        document: The document that is divided.
        chunker: The chunker that divides it.
        question: The question, for a chunker that asks for one; else None.
        divide: Function that divides it, called where the chunks are not cached.
        within: Collection that it is a member of, and where it begins there: chunks are of that.
    """
    whole, at = within or (document, 0)

    def make() -> Sequence[Chunk]:
        own = divide()
        return [whole.chunk(c.start + at, c.end + at) for c in own] if within else own

    key = partial(chunks_key, document, chunker, question)
    memo = (memo_key(chunker), question)
    return _with_notes(document, _divided_of(whole, at), memo, key, make)


def cached_chunks(
    document: Document,
    chunker: object,
    question: str | None,
    within: tuple[Document, int] | None = None,
) -> tuple[Chunk, ...] | None:
    """Returns a document's chunks if its cache has them; takes what `chunks` does."""
    codec = _divided_of(*within or (document, 0))
    return _cached(document, codec, partial(chunks_key, document, chunker, question))


def passages(
    chunks: Sequence[Chunk], makers: Sequence[object], make: Callable[[], Sequence[Chunk]]
) -> tuple[Chunk, ...]:
    """Returns what an enricher makes of a document's chunks; what it notes is noted each time.

    Args:
        chunks: The chunks, at least one, all of one document.
        makers: The enricher, and what reads for it besides its own parameters.
        make: Function that makes them, called where they are not kept.
    """
    document = chunks[0].document
    memo = (*map(memo_key, makers), spans_hash(document, chunks))
    key = partial(passages_key, chunks, makers)
    return _with_notes(document, _enriched_of(document), memo, key, make)


def cached_passages(chunks: Sequence[Chunk], makers: Sequence[object]) -> tuple[Chunk, ...] | None:
    """Returns what an enricher made of a document's chunks if its cache has it."""
    document = chunks[0].document
    return _cached(document, _enriched_of(document), partial(passages_key, chunks, makers))


def _with_notes(
    document: Document,
    codec: Codec[_Divided],
    memo: Hashable,
    key: Callable[[Fingerprint], CacheKey | None],
    make: Callable[[], Sequence[Chunk]],
) -> tuple[Chunk, ...]:
    """Returns the chunks, and notes what was noted when they were made."""

    def made() -> _Divided:
        with collect_notes() as notes:
            return _Divided(tuple(make()), notes)

    divided = document.derived(codec, memo, key, made)
    for text in divided.notes:
        note(text)
    return divided.chunks


def _cached(
    document: Document, codec: Codec[_Divided], key: Callable[[Fingerprint], CacheKey | None]
) -> tuple[Chunk, ...] | None:
    known = key(document.cache.fingerprint) if document.cache else None
    entry = document.cache.get(codec.kind, known) if document.cache and known else None
    return None if entry is None else codec.unpack(entry).chunks


def index(
    document: Document,
    retriever: Any,  # noqa: ANN401 -- any with a method `index`
    chunks: Sequence[Chunk],
    make: Callable[[], Any] | None = None,
) -> Any:  # noqa: ANN401 -- a plug-in may return what no file can hold
    """Returns what a retriever's `index` makes of chunks; its arrays cannot be written to.

    Retrievers that differ only in parameters that their class names in `search_only` share it.

    Args:
        document: The document that the chunks are of.
        retriever: A retriever with a method `index`.
        chunks: The chunks.
        make: Function that makes the index in another way.

    Raises:
        ValueError: A chunk of another document.
    """
    codec: Codec[Any] = Codec("index", lambda made: made, lambda kept: kept)
    key = partial(index_key, document, retriever, chunks)
    memo = (memo_key(retriever, search_only(retriever)), spans_hash(document, chunks))
    make = make or partial(retriever.index, chunks=chunks)
    return document.derived(codec, memo, key, lambda: read_only(make()))


def passages_key(
    chunks: Sequence[Chunk], makers: Sequence[object], fingerprint: Fingerprint
) -> CacheKey | None:
    """Returns what `passages` are made from; None if that cannot be told."""
    known = [fingerprint(stage, ()) for stage in makers]
    enricher, *readers = ({**(each or {})} for each in known)
    if None in known:
        return None
    made: CacheKey = {"enricher": enricher, "readers": [*readers]}
    return {**made, **_of_chunks(chunks[0].document, chunks)}


def chunks_key(
    document: Document, chunker: object, question: str | None, fingerprint: Fingerprint
) -> CacheKey | None:
    """Returns what a document's `chunks` are made from; None if that cannot be told."""
    identity = fingerprint(chunker, ())
    if identity is None:
        return None
    asked: dict[str, JSON] = {} if question is None else {"question": question}
    return {"chunker": {**identity}, "document": content_of(document), **asked}


def index_key(
    document: Document, retriever: object, given: Sequence[Chunk], fingerprint: Fingerprint
) -> CacheKey | None:
    """Returns what an `index` of chunks is made from; None if that cannot be told.

    Raises:
        ValueError: A chunk of another document.
    """
    known = fingerprint(retriever, search_only(retriever))
    return None if known is None else {"retriever": {**known}, **_of_chunks(document, given)}


def _of_chunks(document: Document, given: Sequence[Chunk]) -> dict[str, JSON]:
    return {"document": content_of(document), "chunks": spans_hash(document, given)}


def _divided_of(document: Document, at: int) -> Codec[_Divided]:
    """Returns how chunks are kept, counted from a character of their document."""

    def pack(made: _Divided) -> Index:
        notes: Index = {"notes": [*made.notes]} if made.notes else {}
        return {"spans": spans(made.chunks) - at, **notes}

    def unpack(kept: Index) -> _Divided:
        packed: Any = kept["spans"]
        notes: Any = kept.get("notes", ())
        moved = (packed + at).T.tolist()  # checked when they were made, as is the file
        return _Divided(tuple(map(Chunk, repeat(document), *moved)), notes)

    return Codec("chunks", pack, unpack)


def _enriched_of(document: Document) -> Codec[_Divided]:
    """Returns how passages are kept."""

    def unpack(kept: Index) -> _Divided:
        table: Any = kept
        return _Divided(from_table(document, table), table["notes"])

    return Codec("passages", lambda m: {**to_table(m.chunks), "notes": [*m.notes]}, unpack)


def spans(given: Sequence[Chunk]) -> NDArray[np.int64]:
    """Returns where chunks stand, shape (chunks, 2)."""
    import numpy as np

    spans = [(chunk.start, chunk.end) for chunk in given]
    return np.array(spans, dtype="<i8").reshape(-1, 2)


def spans_hash(document: Document, given: Sequence[Chunk]) -> str:
    """Returns the hash of where chunks stand, and of passages' texts; a tuple's is kept."""

    def hashed() -> tuple[Sequence[Chunk], str]:
        for chunk in given:
            if chunk.document is not document:
                raise ValueError(
                    f"an index for document {document.id!r} cannot be made of a chunk of document"
                    f" {chunk.document.id!r}"
                )
        texts = content_hash(given).encode()  # none for chunks: they are the document's own
        return given, hashlib.sha256(spans(given).tobytes() + texts).hexdigest()

    if not isinstance(given, tuple):
        return hashed()[1]
    return document.memo(("spans", id(given)), hashed)[1]


def content_of(document: Document) -> JSON:
    """Returns what identifies everything in a document that a stage can see."""

    def hashed() -> JSON:
        sections = [dataclasses.astuple(section) for section in document.sections]
        parts = [(part.start, part.end) for part in document.parts]
        return {
            "id": document.id,
            "text": document.sha256,
            "title": document.title,
            "sections": _digest(sections),
            "parts": _digest(parts),
        }

    return document.memo("content", hashed)


def _digest(things: Sequence[Any]) -> JSON:
    text = canonical({"things": [*things]})
    return hashlib.sha256(text.encode()).hexdigest()[:32] if things else None


def search_only(retriever: object) -> tuple[str, ...]:
    """Returns the parameters that a retriever's index does not depend on."""
    names: tuple[str, ...] = getattr(type(retriever), "search_only", ())
    return names
