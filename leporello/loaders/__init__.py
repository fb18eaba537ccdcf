"""The user's own files as documents.

One file a format, each a class: how it is recognised, and how bytes become text with an outline,
places, and what of the file is lost. `load` finds the format by content and suffix. Spans count
characters of the *extracted* text. A loader may touch the file that it is given, and nothing else.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from leporello.core.calls.loader_calls import load_with
from leporello.core.errors import UserError
from leporello.core.protocols import Loader
from leporello.core.records import Document
from leporello.loaders.files import Format, document_of, looks, read_bytes
from leporello.loaders.html import Html
from leporello.loaders.mail import Mail
from leporello.loaders.markdown import Markdown
from leporello.loaders.markup.code import Code
from leporello.loaders.markup.json_values import Json
from leporello.loaders.markup.latex import Latex
from leporello.loaders.markup.notebook import Notebook
from leporello.loaders.markup.restructured import RestructuredText
from leporello.loaders.markup.xml import Xml
from leporello.loaders.office.docx import Docx
from leporello.loaders.office.epub import Epub
from leporello.loaders.office.opendocument import OpenDocument
from leporello.loaders.office.pptx import Pptx
from leporello.loaders.office.rtf import Rtf
from leporello.loaders.pdf import Pdf
from leporello.loaders.subtitles import Subtitles
from leporello.loaders.tables.csv import Csv
from leporello.loaders.tables.sheets import Sheets
from leporello.loaders.text import Text

__all__ = [
    "Code",
    "Csv",
    "Docx",
    "Epub",
    "Html",
    "Json",
    "Latex",
    "Mail",
    "Markdown",
    "Notebook",
    "OpenDocument",
    "Pdf",
    "Pptx",
    "RestructuredText",
    "Rtf",
    "Sheets",
    "Subtitles",
    "Text",
    "Xml",
]

# In the order in which they are asked whether they recognise a file.
FORMATS: tuple[type[Format], ...] = (
    *(
        Pdf,
        Docx,
        Pptx,
        Sheets,
        OpenDocument,
        Epub,
        Rtf,
        Notebook,
        Html,
        Xml,
        Mail,
        Subtitles,
        Latex,
    ),
    *(Markdown, Csv, Json, RestructuredText, Code, Text),
)


def known_suffixes() -> set[str]:
    """Returns the suffixes of all formats, in lower case: `.pdf`."""
    return {suffix for format_ in FORMATS for suffix in format_.suffixes}


def load(path: Path, id: str = "", loader: Loader | None = None) -> Document:  # noqa: A002 -- the record's own word
    """Returns a file as a document.

    Args:
        path: Path of the file.
        id: Id of the document; the file's name where empty.
        loader: Loader for files of its suffixes, or for all if it has none; others are read by what
            they are.

    Raises:
        UserError: The file cannot be read, is too large, or has no text.
    """
    if loader is not None and not isinstance(loader, Format) and _takes(loader, path):
        document = load_with(loader, path)
    else:
        document = load_bytes(read_bytes(path), path, loader)
    return dataclasses.replace(document, id=id) if id else document


def load_bytes(data: bytes, path: Path, loader: Loader | None = None) -> Document:
    """Returns what a file holds as a document; see `load`.

    Args:
        data: Bytes of the file.
        path: Path of the file, which need not be there: it may be a part of another one.
        loader: Loader for files of its format and suffixes, if it is one of ours.

    Raises:
        UserError: The bytes are no document, or have no text.
    """
    reads, note = loader_of(data, path, loader)
    if not isinstance(reads, Format):
        return load_with(reads, path)
    document = document_of(reads, data, path)
    return dataclasses.replace(document, notes=(*([note] if note else []), *document.notes))


def loader_of(data: bytes, path: Path, loader: Loader | None = None) -> tuple[Loader, str]:
    """Returns what reads a file, and a note on what it was read as; takes what `load_bytes` does.

    Raises:
        UserError: It is none of the formats that are read.
    """
    if loader is not None and not isinstance(loader, Format) and _takes(loader, path):
        return loader, ""
    format_, note = recognised(data, path)
    own = isinstance(loader, Format) and (isinstance(loader, format_) or _takes(loader, path))
    return (loader if own and loader else format_()), note


def _takes(loader: Loader, path: Path) -> bool:
    suffixes = getattr(loader, "suffixes", ())
    return not suffixes or path.suffix.lower() in suffixes


def recognised(data: bytes, path: Path) -> tuple[type[Format], str]:
    """Returns what a file is by its content, else by its suffix; and a note if these differ.

    Args:
        data: Bytes of the file.
        path: Path of the file.

    Raises:
        UserError: It is none of the formats that are read.
    """
    named = next((f for f in FORMATS if path.suffix.lower() in f.suffixes), None)
    if named and named.recognises(data, path):
        return named, ""
    found = next((f for f in FORMATS if f.recognises(data, path)), None)
    if not found and (known := looks(data)):
        raise UserError(f"{path}: is not read: it looks like {known}")
    if not found and named and named.marked:
        found = Text
    if found and found is not named:
        of_suffix = f", not {named.__name__} as its suffix says" if named else ""
        return found, f"{path.name} was read as {found.__name__}, which it is{of_suffix}"
    return named or Text, ""
