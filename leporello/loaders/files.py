"""Opens users' files, detects their formats, and defines the base class of formats."""

import dataclasses
import hashlib
import io
import os
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import BufferedReader
from pathlib import Path
from typing import ClassVar

from leporello import loaders
from leporello.core.calls.contracts import load_with
from leporello.core.errors import UserError
from leporello.core.files import opened
from leporello.core.protocols import Loader
from leporello.core.records import Document
from leporello.loaders.encoded_data import without_data

ZIP = re.compile(rb"PK\x03\x04")  # the beginning of an archive
LARGEST = 2**30  # bytes of a document; its text, offsets and index take many times as much
_HEAD = 2**16  # bytes that are examined
_MOST_CONTROLS = 0.02  # share of a text's bytes
_TEXT = bytes({*range(0x20, 0x100), *b"\t\n\r\f\v\b\x1a\x1b"})  # no control characters
# First bytes of archives that are not read.
_ARCHIVES = (
    *(b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7z", b"(\xb5/\xfd", b"7z\xbc\xaf"),
    b"Rar!",
)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_STREAMS = {
    "EncryptedPackage": "an Office file locked by a password; save an open copy first",
    "WordDocument": "a Word file from before 2007; save it as .docx:"
    " soffice --headless --convert-to docx",
    "PowerPoint Document": "a PowerPoint file from before 2007; save it as .pptx:"
    " soffice --headless --convert-to pptx",
    "__properties_version1.0": "an Outlook mail (.msg); save it as .eml",
}


class Format(ABC):
    """File format: recognises files, and extracts their text.

    Attributes:
        suffixes: Suffixes of files, in lower case, with the dot.
        begins: Pattern of the first bytes of files with any suffix; None if only the suffix
            identifies the format.
        marked: Whether the content of a file always identifies the format, whatever the suffix.
        encoding: Encoding of files without a byte order mark; if empty, UTF-8, or the most likely
            encoding of a file that is not UTF-8.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    begins: ClassVar[re.Pattern[bytes] | None] = None
    marked: ClassVar[bool] = False

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- for subclasses
        """Returns whether a file that matches `begins` has this format, by its first 64 KiB."""
        return True

    @abstractmethod
    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text of a file, with sections, places, losses and notes, without an id.

        The path is for messages; it may be inside an archive. Raises UserError if the file has
        another format, is corrupt, or is locked.
        """

    def load(self, path: Path) -> Document:
        """Loads a file as a document; raises UserError as `load` does."""
        return document_of(self, read_bytes(path), path)


# Formats in the order in which they try to recognise a file; plain text reads all remaining files.
_ORDER = (
    *("Pdf", "Docx", "Pptx", "Sheets", "OpenDocument", "Epub", "Rtf", "Notebook", "Html", "Xml"),
    *("Mail", "Subtitles", "Latex", "Markdown", "Csv", "Json", "RestructuredText", "Code", "Text"),
)


@cache
def formats() -> Sequence[type[Format]]:
    """Returns all formats in the order in which they try to recognise a file."""
    return [getattr(loaders, name) for name in _ORDER]


def known_suffixes() -> set[str]:
    """Returns the suffixes of all formats, in lower case: `.pdf`."""
    return {suffix for format_ in formats() for suffix in format_.suffixes}


def load(path: Path, id: str = "", loader: Loader | None = None) -> Document:  # noqa: A002 -- as in Document
    """Loads a file as a document; raises UserError if it cannot be read, is too large or empty.

    A `loader` reads files with its suffixes, or all files if it has no suffixes; the format of all
    other files is detected.
    """
    if loader is not None and not isinstance(loader, Format) and _takes(loader, path):
        document = load_with(loader, path)
    else:
        document = load_bytes(read_bytes(path), path, loader)
    return dataclasses.replace(document, id=id) if id else document


def load_bytes(data: bytes, path: Path, loader: Loader | None = None) -> Document:
    """Converts the bytes of a file, perhaps inside another file, to a document; see `load`.

    A built-in loader reads files of its format too, whatever their suffix.
    """
    return read_with(*loader_of(data, path, loader), data, path)


def read_with(loader: Loader, note: str, data: bytes, path: Path) -> Document:
    """Returns the document of a file, by the loader and with the note that `loader_of` gave."""
    if not isinstance(loader, Format):
        return load_with(loader, path)
    document = document_of(loader, data, path)
    return dataclasses.replace(document, notes=(*filter(None, [note]), *document.notes))


def loader_of(data: bytes, path: Path, loader: Loader | None = None) -> tuple[Loader, str]:
    """Returns the loader of a file, and a note if its suffix is misleading; see `load_bytes`."""
    takes = loader is not None and _takes(loader, path)
    if takes and loader and not isinstance(loader, Format):
        return loader, ""
    format_, note = _recognised(data, path)
    return (loader if loader and (takes or isinstance(loader, format_)) else format_()), note


def _takes(loader: Loader, path: Path) -> bool:
    suffixes = getattr(loader, "suffixes", ())
    return not suffixes or path.suffix.lower() in suffixes


def _recognised(data: bytes, path: Path) -> tuple[type[Format], str]:
    """Detects a file's format by content, otherwise by suffix; returns a note if these differ."""
    by_suffix = next((f for f in formats() if path.suffix.lower() in f.suffixes), None)
    if by_suffix and _is_of(by_suffix, data, path):
        return by_suffix, ""
    by_content = next((f for f in formats() if _is_of(f, data, path)), None)
    if not by_content and (kind := looks(data)):
        raise UserError(f"{path}: cannot be read: it looks like {kind}")
    if not by_content and by_suffix and by_suffix.marked:
        by_content = formats()[-1]
    if by_content and by_content is not by_suffix:
        expected = f", not as {by_suffix.__name__}, the format of its suffix" if by_suffix else ""
        return by_content, f"{path.name} was read as {by_content.__name__}{expected}"
    return by_suffix or formats()[-1], ""


def _is_of(format_: type[Format], data: bytes, path: Path) -> bool:
    begins = format_.begins
    return begins is not None and bool(begins.match(data)) and format_.recognises(data, path)


def document_of(format: Format, data: bytes, path: Path) -> Document:  # noqa: A002 -- the plain name
    """Converts a file of a known format to a document; raises UserError if that fails."""
    try:
        extracted = without_data(format.extract(data, path))
    except UserError:
        raise
    except MemoryError:
        raise UserError(f"{path}: does not fit into this machine's memory; divide it") from None
    except RecursionError:
        raise UserError(f"{path}: is nested too deeply to be read") from None
    except Exception as error:  # libraries raise all kinds of errors for corrupt files
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(
            f"{path}: is not a {type(format).__name__} file, or is corrupt ({reason})"
        ) from error
    if not extracted.text.strip():
        reasons = "; ".join(dict.fromkeys(f"{loss.what}: {loss.why}" for loss in extracted.losses))
        raise UserError(f"{path}: the file has no text" + (f" ({reasons})" if reasons else ""))
    title = " ".join(extracted.title.split()) or path.stem
    return dataclasses.replace(extracted, id=path.name, title=title)


def is_binary(data: bytes) -> bool:
    """Returns whether the first bytes have more control characters than a text."""
    return len(_controls(data)) > _MOST_CONTROLS * len(data[:_HEAD])


def _controls(data: bytes) -> bytes:
    return data[:_HEAD].translate(None, _TEXT)


def looks(data: bytes) -> str:
    """Returns the kind of an unsupported file, and what to do; empty if it may be text."""
    if not _controls(data):
        return ""  # a text that begins with the same letters
    if data.startswith(b"PK\x03\x04") and not zipfile.is_zipfile(io.BytesIO(data)):
        return "a zip archive that is corrupt or incomplete; download it again"
    if data.startswith(OLE):
        kinds = (kind for name, kind in _OLE_STREAMS.items() if name.encode("utf-16-le") in data)
        return next(kinds, "an Office file from before 2007; save it in a current format")
    return "an archive; unpack it" if data.startswith(_ARCHIVES) else ""


def read_bytes(path: Path) -> bytes:
    """Reads the bytes of a document's file; raises UserError if it is unreadable or too large."""
    with _document(path) as file:
        return file.read()


def file_hash(path: Path) -> bytes:
    """Returns the SHA-256 of a document's file, reading it block by block."""
    with _document(path) as file:
        return hashlib.file_digest(file, "sha256").digest()


@contextmanager
def _document(path: Path) -> Iterator[BufferedReader]:
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            limit = f"{LARGEST // 2**20} MiB"
            raise UserError(f"{path}: is larger than {limit}, the limit of a document; divide it")
        try:
            yield file
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
