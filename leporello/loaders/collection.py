"""Loads files, folders, patterns, URLs and archives as one document, each file at most once."""

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.members import join
from leporello.core.protocols import Loader
from leporello.core.records import JSON, CacheProtocol, Document, Index, Loss, Place, Section, Span
from leporello.loaders.files import LARGEST, load_bytes, loader_of
from leporello.loaders.finding import MOST_NAMES, UNREADABLE, FoundFile, find_sources
from leporello.storage import to_path


def load_collection(
    paths: Sequence[str | Path],
    id: str = "",  # noqa: A002 -- as in Document
    *,
    cache: CacheProtocol | None = None,
    loader: Loader | None = None,
) -> Document:
    """Loads files as one document with a member for each file.

    Hidden files and links that lead out of a folder are skipped and reported in notes. A file that
    cannot be read is reported as a loss, `unreadable file`. Extracted texts are cached by content.
    Raises UserError if a path does not exist, no file can be read, or the collection is too large.

    Args:
        paths: Files, folders, patterns (`notes/**/*.md`), URLs and `.zip` archives.
        id: Id of the document; the names of the paths if empty.
        cache: Cache of extracted texts.
        loader: Loader for files with its suffixes, or for all files if it has no suffixes.
    """
    files = find_sources(paths)
    documents, size = [], 0
    for source in files.sources:
        document, losses = _loaded(source, cache, loader)
        files.losses += losses
        if document:
            documents.append(document)
            size += len(document.text)
        if size > LARGEST:
            raise UserError(
                f"{_title(paths)}: is larger than {LARGEST // 2**20} MiB of text, the limit of a"
                " collection; divide it"
            )
    notes = [*files.notes()]
    if not documents:
        reasons = [loss.why for loss in files.losses[:MOST_NAMES]] or notes or ["it is empty"]
        raise UserError(f"{_title(paths)}: contains no file with text: {'; '.join(reasons)}")
    return join(documents, id or _title(paths), files.losses, notes)


def collection_hash(paths: Sequence[str | Path]) -> bytes:
    """Returns a hash of the names and contents of all files that `load_collection` would read."""
    digest = hashlib.sha256()
    for source in find_sources(paths).sources:
        try:
            content = hashlib.sha256(source.read()).hexdigest()
        except UserError as error:
            content = str(error)
        digest.update(f"{source.name}\n{content}\n".encode())
    return digest.digest()


def unreadable(document: Document) -> tuple[Loss, ...]:
    """Returns the files of a collection that could not be read."""
    return tuple(loss for loss in document.losses if loss.what == UNREADABLE)


def _title(paths: Iterable[str | Path]) -> str:
    return ", ".join(to_path(path).name or str(path) for path in paths)


def _loaded(
    source: FoundFile, cache: CacheProtocol | None, loader: Loader | None
) -> tuple[Document | None, list[Loss]]:
    try:
        return _document(source, cache, loader), []
    except UserError as error:
        why = str(error)
    except Exception as error:  # a format's library fails on a broken file
        why = f"{source.path}: {type(error).__name__}: {error}"
    return None, [Loss(UNREADABLE, why, source.name)]


def _document(source: FoundFile, cache: CacheProtocol | None, loader: Loader | None) -> Document:
    """Returns a file's document, from the cache if its content is cached."""
    data = source.read()
    reads, _ = loader_of(data, source.path, loader)
    loader_id = cache.fingerprint(reads) if cache else None
    if cache is None or loader_id is None:
        return dataclasses.replace(load_bytes(data, source.path, loader), id=source.name)
    content = hashlib.sha256(data).hexdigest()
    key: dict[str, JSON] = {"loader": {**loader_id}, "file": content, "name": source.path.name}
    if (cached := cache.get("texts", key)) is not None:
        return _unpacked_document(cached, source.name)
    packed = _packed(load_bytes(data, source.path, loader))
    cache.put("texts", key, packed)
    return _unpacked_document(packed, source.name)


def _packed(document: Document) -> Index:
    import numpy as np

    text = document.text.encode("utf-8", "surrogatepass")
    return {
        "text": np.frombuffer(text, np.uint8),
        "sha256": document.sha256,
        "title": document.title,
        "notes": [*document.notes],
        **{
            name: [[*dataclasses.astuple(record)] for record in getattr(document, name)]
            for name in ("sections", "parts", "places", "losses")
        },
    }


def _unpacked_document(index: Index, name: str) -> Document:
    packed: Any = index
    document = Document(
        name,
        str(packed["text"].data, "utf-8", "surrogatepass"),
        packed["title"],
        tuple(Section(*section) for section in packed["sections"]),
        tuple(Span(*part) for part in packed["parts"]),
        tuple(Place(*place) for place in packed["places"]),
        tuple(Loss(*loss) for loss in packed["losses"]),
        tuple(packed["notes"]),
    )
    document.memo("sha256", lambda: packed["sha256"])
    return document
