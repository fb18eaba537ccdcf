"""The user's own files as documents: plain text, Markdown, subtitles, HTML, PDF.

Spans count characters of the *extracted* text; a document's sections say where its pages, cues
and headings stand in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from leporello.errors import UserError
from leporello.loading import hypertext, markdown, pdf, plain, subtitles
from leporello.loading.extracted import Extracted, place
from leporello.records import Document

__all__ = ["FORMATS", "load", "place"]

FORMATS: Mapping[str, Callable[[bytes, Path], Extracted]] = {
    ".htm": hypertext.extract,
    ".html": hypertext.extract,
    ".markdown": markdown.extract,
    ".md": markdown.extract,
    ".pdf": pdf.extract,
    ".srt": subtitles.extract,
    ".text": plain.extract,
    ".txt": plain.extract,
    ".vtt": subtitles.extract,
    ".xhtml": hypertext.extract,
}


def load(path: Path, id: str = "") -> Document:  # noqa: A002 -- the record's own word
    """Returns the file as a document; a file of no known suffix is read as plain text.

    Args:
        path: Of the file.
        id: Of the document; the file's name where empty.

    Raises:
        UserError: The file cannot be read, or has no text.
    """
    extract = FORMATS.get(path.suffix.lower(), plain.extract)
    found = extract(_bytes(path), path)
    if not found.text.strip():
        raise UserError(f"{path}: the file has no text")
    title = " ".join(found.title.split()) or path.stem
    return Document(id or path.name, found.text, title, found.sections)


def _bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise UserError(f"{path}: is a folder; name one file")
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in its name
        raise UserError(f"{str(path)!r}: is no path: {error}") from None
