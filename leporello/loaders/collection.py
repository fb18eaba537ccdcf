"""Loads files, folders, patterns, URLs and archives as one document, each file at most once."""

import dataclasses
import glob
import hashlib
import os
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import at_home, opened
from leporello.core.members import join
from leporello.core.protocols import Loader
from leporello.core.records import JSON, CacheProtocol, Document, Index, Loss, Place, Section, Span
from leporello.loaders.files import LARGEST, loader_of, read_bytes, read_with
from leporello.loaders.office.archive import is_bomb
from leporello.storage import RemotePath, to_path
from leporello.storage.location import Location

UNREADABLE = "unreadable file"
MOST_NAMES = 5  # in a note
_HIDDEN = re.compile(r"(?:\A|/)(?:\.(?!\.?/)|__MACOSX/)")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read."""

    name: str  # name in the collection
    path: Path  # path of the file, for its suffix and for messages
    read: Callable[[], bytes]  # function that returns its bytes; raises UserError


@dataclass
class _Found:
    sources: list[FoundFile] = field(default_factory=list)  # files to read
    losses: list[Loss] = field(default_factory=list)  # files that cannot be read
    hidden: list[str] = field(default_factory=list)  # names of files and folders
    links: list[str] = field(default_factory=list)  # names of those that leave their folder

    def notes(self) -> Iterator[str]:
        """Yields notes on skipped files."""
        for why, names in (("hidden", self.hidden), ("links out of their folder", self.links)):
            if names:
                more = f", … ({len(names)})" if len(names) > MOST_NAMES else ""
                yield f"skipped, {why}: {', '.join(sorted(names)[:MOST_NAMES])}{more}"


def find_sources(paths: Sequence[str | Path]) -> _Found:
    """Finds the files at paths, each file once; raises UserError if a path does not exist."""
    files, is_single = _Found(), len(paths) == 1
    for path in paths:
        for match in _expanded(path):
            _find(match, files, "" if is_single else f"{match.name}/")
    files.sources = [*_unique_names(files.sources)]
    return files


def _expanded(text: str | Path) -> Iterator[Path]:
    path = to_path(text)
    if isinstance(path, RemotePath):
        yield path
        return
    path = at_home(path)
    if path.exists() or not glob.has_magic(str(path)):
        yield path
        return
    if not (matches := sorted(glob.glob(str(path), recursive=True))):  # noqa: PTH207 -- Path.glob takes no absolute pattern
        raise UserError(f"{text}: no file matches this pattern")
    yield from (Path(match) for match in matches if Path(match).is_file())


def _find(path: Path, found: _Found, prefix: str) -> None:
    """Adds the files at a path; `prefix` precedes the names of files in a folder or archive."""
    if isinstance(path, RemotePath) and path.is_dir():
        for name in sorted(Location(str(path)).files()):
            found.sources.append(
                FoundFile(prefix + name, path / name, partial(read_bytes, path / name))
            )
    elif path.is_dir():
        _walk(path, found, prefix)
    else:
        opened(path).close()  # a path of the user must exist
        _add(path, _shown(path.name), found, f"{path.name}/" if prefix else "")


def _walk(folder: Path, found: _Found, prefix: str) -> None:
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
            elif path.is_symlink() and not (
                path.exists() and path.resolve().is_relative_to(root)  # not in a circle of links
            ):
                found.links.append(shown)
            elif name in files and not path.is_symlink():  # a link inside is found by its target
                _add(path, shown, found, f"{shown}/")
        folders[:] = [name for name in folders if not name.startswith(".")]


def _add(path: Path, name: str, found: _Found, prefix: str) -> None:
    if path.suffix.lower() == ".zip":
        try:
            _unpack(path, found, prefix)
        except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
            found.losses.append(Loss(UNREADABLE, f"{path}: is not an archive: {error}", name))
    else:
        found.sources.append(FoundFile(name, path, partial(read_bytes, path)))


def _unpack(path: Path, found: _Found, prefix: str) -> None:
    archive = zipfile.ZipFile(os.fspath(path))  # stays open until its files are read
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if is_bomb(size := sum(entry.file_size for entry in entries), path.stat().st_size):
        raise ValueError(f"would unpack to {size:,} bytes, too many")
    for entry in entries:
        name = prefix + _shown(entry.filename)
        if _HIDDEN.search(entry.filename):
            found.hidden.append(name)
        else:
            inner = Path(path, entry.filename)
            found.sources.append(FoundFile(name, inner, partial(_unpacked, archive, entry, name)))


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> bytes:
    try:
        return archive.read(entry)
    except Exception as error:  # corrupt archives raise all kinds of errors
        raise UserError(f"{name}: cannot be unpacked: {error}") from None


def _unique_names(sources: Sequence[FoundFile]) -> Iterator[FoundFile]:
    """Yields each file once, named by its path if another file has the same name."""
    once: dict[Path, FoundFile] = {}
    for source in sources:
        once.setdefault(source.path.resolve(), source)
    names = Counter(source.name for source in once.values())
    for source in once.values():
        shared = names[source.name] > 1
        yield dataclasses.replace(source, name=_shown(str(source.path))) if shared else source


def _shown(name: str) -> str:
    """Replaces characters of a name that cannot be printed."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


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
        try:
            documents.append(_document(source, cache, loader))
            size += len(documents[-1].text)
        except UserError as error:
            files.losses.append(Loss(UNREADABLE, str(error), source.name))
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


def _document(source: FoundFile, cache: CacheProtocol | None, loader: Loader | None) -> Document:
    """Returns a file's document, from the cache if its content is cached."""
    data = source.read()
    reads, note = loader_of(data, source.path, loader)
    loader_id = cache.fingerprint(reads) if cache else None
    if cache is None or loader_id is None:
        document = read_with(reads, note, data, source.path)
        return dataclasses.replace(document, id=source.name)
    content = hashlib.sha256(data).hexdigest()
    key: dict[str, JSON] = {"loader": {**loader_id}, "file": content, "name": source.path.name}
    if (packed := cache.get("texts", key)) is None:
        packed = _packed(read_with(reads, note, data, source.path))
        cache.put("texts", key, packed)
    return _unpacked_document(packed, source.name)


_RECORDS = {"sections": Section, "parts": Span, "places": Place, "losses": Loss}


def _packed(document: Document) -> Index:
    import numpy as np

    text = document.text.encode("utf-8", "surrogatepass")
    return {
        "text": np.frombuffer(text, np.uint8),
        "title": document.title,
        "notes": [*document.notes],
        **{
            name: [[*dataclasses.astuple(record)] for record in getattr(document, name)]
            for name in _RECORDS
        },
    }


def _unpacked_document(index: Index, name: str) -> Document:
    packed: Any = index
    text = str(packed["text"].data, "utf-8", "surrogatepass")
    records: Any = {
        name: tuple(kind(*values) for values in packed[name]) for name, kind in _RECORDS.items()
    }
    return Document(name, text, packed["title"], notes=(*packed["notes"],), **records)
