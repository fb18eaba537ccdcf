"""Files, folders, patterns, URLs and archives as one document, each file read at most once.

What a file became is kept by its content, so that of a collection only what is new is read again.
"""

from __future__ import annotations

import dataclasses
import glob
import hashlib
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import opened
from leporello.core.members import join
from leporello.core.protocols import Loader
from leporello.core.records import JSON, CacheProtocol, Document, Index, Loss, Place, Section, Span
from leporello.loaders import load_bytes, loader_of
from leporello.loaders.files import LARGEST, read_bytes
from leporello.storage import RemotePath, to_path
from leporello.text.subtitles import Cue

__all__ = ["UNREADABLE", "collection_hash", "is_collection", "load_collection", "unreadable"]

UNREADABLE = "unreadable file"
_SHOWN = 5  # names in a note
_BOMB = (2**24, 100)  # bytes and the factor that an archive's file may grow by, not by both
_ARCHIVES = (".zip", ".gz", ".tar", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar")
_HIDDEN = re.compile(r"(?:\A|/)(?:\.(?!\.?/)|__MACOSX/)")
_TRIES = 3  # to read a file that changes meanwhile


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to be read.

    Attributes:
        name: Name in the collection.
        path: Path of the file, for its suffix and for messages.
        read: Function that returns its bytes; raises UserError.
    """

    name: str
    path: Path
    read: Callable[[], bytes]


@dataclass
class _Found:
    """What was found at the paths that were given.

    Attributes:
        sources: Files.
        losses: What is listed there and cannot be read.
        hidden: Names of hidden files and folders, which are passed over.
        links: Names of symbolic links that lead out of their folder, which are not followed.
    """

    sources: list[_Source] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def notes(self) -> Iterator[str]:
        """Yields what was passed over."""
        told = ((self.hidden, "hidden: {}"), (self.links, "not followed out of its folder: {}"))
        for names, why in told:
            if names:
                more = f", … ({len(names)})" if len(names) > _SHOWN else ""
                yield f"passed over, {why.format(', '.join(sorted(names)[:_SHOWN]) + more)}"


def load_collection(
    paths: Sequence[str | Path],
    id: str = "",  # noqa: A002 -- the record's own word
    *,
    cache: CacheProtocol | None = None,
    loader: Loader | None = None,
) -> Document:
    """Returns files as one document with a member for each.

    Hidden files and what links lead to outside of a folder are passed over, which notes tell. A
    file that cannot be read is told as a loss, `unreadable file`.

    Args:
        paths: Files, folders, patterns (`notes/**/*.md`), URLs and `.zip` archives.
        id: Id of the document; the paths' names where empty.
        cache: Where texts of files are kept.
        loader: Loader for files of its suffixes, or for all if it has none.

    Raises:
        UserError: Nothing stands at a path, no file can be read, or all are too large together.
    """
    found = _found(paths)
    documents, size = [], 0
    for source in found.sources:
        document, losses = _loaded(source, cache, loader)
        found.losses += losses
        if document:
            documents.append(document)
            size += len(document.text)
        if size > LARGEST:
            raise UserError(
                f"{_title(paths)}: is larger than {LARGEST // 2**20} MiB of text, the most of a"
                " collection; divide it"
            )
    notes = [*found.notes()]
    if not documents:
        reasons = [loss.why for loss in found.losses[:_SHOWN]] or notes or ["it is empty"]
        raise UserError(f"{_title(paths)}: holds no file with text: {'; '.join(reasons)}")
    return join(documents, id or _title(paths), found.losses, notes)


def collection_hash(paths: Sequence[str | Path]) -> bytes:
    """Returns the hash of the names and the content of all that `load_collection` would read.

    Raises:
        UserError: Nothing stands at a path.
    """
    digest = hashlib.sha256()
    for source in _found(paths).sources:
        try:
            content = hashlib.sha256(source.read()).hexdigest()
        except UserError as error:
            content = str(error)
        digest.update(f"{source.name}\n{content}\n".encode())
    return digest.digest()


def is_collection(paths: Sequence[Path]) -> bool:
    """Says whether paths are more than one file: several, a folder, a pattern or an archive."""
    [first, *more] = paths
    if more or first.suffix.lower() == ".zip" or isinstance(first, RemotePath):
        return bool(more) or first.suffix.lower() == ".zip" or first.is_dir()
    return first.is_dir() or (glob.has_magic(str(first)) and not first.exists())


def unreadable(document: Document) -> tuple[Loss, ...]:
    """Returns the files of a collection that could not be read."""
    return tuple(loss for loss in document.losses if loss.what == UNREADABLE)


def _title(paths: Iterable[str | Path]) -> str:
    return ", ".join(to_path(path).name or str(path) for path in paths)


def _found(paths: Sequence[str | Path]) -> _Found:
    """Returns what stands at paths, each file once.

    Raises:
        UserError: Nothing stands at a path.
    """
    found, alone = _Found(), len(paths) == 1
    for path in paths:
        for each in _expanded(path):
            _find(each, found, "" if alone else f"{each.name}/")
    found.sources = [*_named_apart(found.sources)]
    return found


def _expanded(text: str | Path) -> Iterator[Path]:
    """Yields the paths that a path or a pattern means."""
    path = to_path(text)
    if isinstance(path, RemotePath):
        yield path
        return
    path = Path(os.path.expanduser(path))  # noqa: PTH111 -- Path's raises where there is no such user
    if path.exists() or not glob.has_magic(str(path)):
        yield path
        return
    if not (matches := sorted(glob.glob(str(path), recursive=True))):  # noqa: PTH207 -- Path's takes no absolute pattern
        raise UserError(f"{text}: no file fits this pattern")
    yield from (Path(match) for match in matches if Path(match).is_file())


def _find(path: Path, found: _Found, prefix: str) -> None:
    """Adds what stands at a path.

    Args:
        path: A file, a folder, an archive, or a URL of one of these.
        found: What was found before, which is added to.
        prefix: Text before the names of files in a folder or archive.

    Raises:
        UserError: There is nothing.
    """
    if isinstance(path, RemotePath) and path.is_dir():
        from leporello.storage.location import Location

        for name in sorted(Location(str(path)).files()):
            found.sources.append(_Source(prefix + name, path / name, partial(_read, path / name)))
    elif path.is_dir():
        _walk(path, found, prefix)
    else:
        opened(path).close()  # what the user named must be there
        _add(path, _shown(path.name), found, f"{path.name}/" if prefix else "")


def _walk(folder: Path, found: _Found, prefix: str) -> None:
    """Adds the files below a folder."""

    def failed(error: OSError) -> None:
        found.losses.append(Loss(UNREADABLE, str(error), _shown(str(error.filename))))

    root = folder.resolve()
    for at, folders, files in os.walk(folder, onerror=failed):
        folders.sort()
        for name in sorted([*folders, *files]):
            path = Path(at, name)
            shown = prefix + _shown(path.relative_to(folder).as_posix())
            if name.startswith("."):
                found.hidden.append(shown)
            elif path.is_symlink() and not path.resolve().is_relative_to(root):
                found.links.append(shown)
            elif name in files and not path.is_symlink():  # one inside is there by its own name
                _add(path, shown, found, f"{shown}/")
        folders[:] = [name for name in folders if not name.startswith(".")]


def _add(path: Path, name: str, found: _Found, prefix: str) -> None:
    """Adds a file, or the files of an archive."""
    if path.suffix.lower() == ".zip":
        try:
            _unpack(path, found, prefix)
        except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
            found.losses.append(Loss(UNREADABLE, f"{path}: is no archive: {error}", name))
    else:
        found.sources.append(_Source(name, path, partial(_read, path)))


def _unpack(path: Path, found: _Found, prefix: str) -> None:
    archive = zipfile.ZipFile(os.fspath(path))  # open as long as something is to be read from it
    if "[Content_Types].xml" in archive.namelist():  # of an office program, with another suffix
        found.sources.append(_Source(prefix.removesuffix("/"), path, partial(_read, path)))
        return
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if sum(entry.file_size for entry in entries) > LARGEST:
        raise ValueError(f"unpacks to more than {LARGEST // 2**20} MiB")
    for entry in entries:
        name = prefix + _shown(entry.filename)
        if _HIDDEN.search(entry.filename):
            found.hidden.append(name)
        elif why := _refused(entry):
            found.losses.append(Loss(UNREADABLE, f"{name}: {why}", name))
        else:
            inner = Path(path, entry.filename)
            found.sources.append(_Source(name, inner, partial(_unpacked, archive, entry, name)))


def _refused(entry: zipfile.ZipInfo) -> str:
    """Returns why a file of an archive is not unpacked; nothing if it is."""
    least, factor = _BOMB
    if entry.flag_bits & 1:
        return "is encrypted; unpack the archive first"
    if entry.filename.lower().endswith(_ARCHIVES):
        return "is an archive within an archive; unpack it first"
    if entry.file_size > max(least, entry.compress_size * factor):
        return f"would unpack to {entry.file_size} bytes from {entry.compress_size}; left packed"
    return ""


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    try:
        return archive.read(entry)
    except Exception as error:  # a broken archive trips whatever unpacks it
        raise UserError(f"{name}: cannot be unpacked: {error}") from None


def _read(path: Path) -> bytes:
    """Returns what a file holds, all of it from one moment.

    Raises:
        UserError: It cannot be read, or changes each time.
    """
    for _ in range(_TRIES):
        if isinstance(path, RemotePath):
            return read_bytes(path)
        before, data, after = _stamp(path), read_bytes(path), _stamp(path)
        if before == after:
            return data
    raise UserError(f"{path}: changes while it is read")


def _stamp(path: Path) -> tuple[int, int, int]:
    with opened(path) as file:
        status = os.fstat(file.fileno())
        return status.st_ino, status.st_size, status.st_mtime_ns


def _named_apart(sources: Sequence[_Source]) -> Iterator[_Source]:
    """Yields each file once, by its path where another has its name."""
    once: dict[Path, _Source] = {}
    for source in sources:
        once.setdefault(source.path.resolve(), source)
    names = Counter(source.name for source in once.values())
    for source in once.values():
        shared = names[source.name] > 1
        yield dataclasses.replace(source, name=_shown(str(source.path))) if shared else source


def _shown(name: str) -> str:
    """Returns a name that can be printed and written as UTF-8."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


def _loaded(
    source: _Source, cache: CacheProtocol | None, loader: Loader | None
) -> tuple[Document | None, list[Loss]]:
    """Returns a file's document, or why there is none."""
    try:
        return _document(source, cache, loader), []
    except UserError as error:
        why = str(error)
    except Exception as error:  # a broken file at which a format's library trips
        why = f"{source.path}: {type(error).__name__}: {error}"
    return None, [Loss(UNREADABLE, why, source.name)]


def _document(source: _Source, cache: CacheProtocol | None, loader: Loader | None) -> Document:
    """Returns a file's document, from the cache where it is kept by its content.

    Raises:
        UserError: It cannot be read as one.
    """
    data = source.read()
    reads, _ = loader_of(data, source.path, loader)
    known = cache.fingerprint(reads) if cache else None
    if cache is None or known is None:
        return dataclasses.replace(load_bytes(data, source.path, loader), id=source.name)
    content = hashlib.sha256(data).hexdigest()
    key: dict[str, JSON] = {"loader": {**known}, "file": content, "name": source.path.name}
    if (kept := cache.get("texts", key)) is not None:
        return _unpacked_document(kept, source.name)
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
        "sections": [[*dataclasses.astuple(section)] for section in document.sections],
        "parts": [[*dataclasses.astuple(part)] for part in document.parts],
        "places": [[*dataclasses.astuple(place)] for place in document.places],
        "losses": [[*dataclasses.astuple(loss)] for loss in document.losses],
    }


def _unpacked_document(kept: Index, name: str) -> Document:
    packed: Any = kept
    document = Document(
        name,
        str(packed["text"].data, "utf-8", "surrogatepass"),
        packed["title"],
        tuple(Section(*section) for section in packed["sections"]),
        tuple(Span(*part) for part in packed["parts"]),
        tuple((Place if len(p) == len(fields(Place)) else Cue)(*p) for p in packed["places"]),
        tuple(Loss(*loss) for loss in packed["losses"]),
        tuple(packed["notes"]),
    )
    document.memo("sha256", lambda: packed["sha256"])
    return document
