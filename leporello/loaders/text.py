"""Plain text: UTF-8, or whatever its byte order mark says."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.loaders.files import Format
from leporello.text.outline import Extracted

__all__ = ["Text", "decode", "marked_encoding"]

# UTF-32 first: its little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class Text(Format):
    """Plain text, to the character.

    Attributes:
        encoding: Encoding of files without a byte order mark; guessed where it is empty and the
            file is no UTF-8.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".text")

    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text as it stands, line endings included.

        Raises:
            UserError: The bytes are not text in a known encoding.
        """
        return Extracted(decode(data, path, self.encoding or "utf-8"))


def marked_encoding(data: bytes) -> tuple[str, int] | None:
    """Returns the encoding that a byte order mark names and the mark's length, if there is one."""
    encodings = ((name, len(mark)) for mark, name in _MARKS if data.startswith(mark))
    return next(encodings, None)


def decode(data: bytes, path: Path, encoding: str = "utf-8") -> str:
    """Returns the text of a file; a byte order mark wins over `encoding`, and is left out.

    Raises:
        UserError: A byte that the encoding does not have, with its offset; NUL characters.
    """
    name, skipped = marked_encoding(data) or (encoding, 0)
    try:
        text = data[skipped:].decode(name)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: byte {skipped + error.start} is not {name.upper()}; convert the file:"
            f" iconv -f ENCODING -t UTF-8 {path.name} > {path.stem}.utf8{path.suffix}"
            " (ENCODING is often WINDOWS-1252)"
        ) from None
    if (nul := text.find("\0")) >= 0:
        raise UserError(
            f"{path}: character {nul} is NUL, so this is no {name.upper()} text; if it is UTF-16"
            f" without a byte order mark, convert it: iconv -f UTF-16LE -t UTF-8 {path.name}"
            f" > {path.stem}.utf8{path.suffix}"
        )
    return text
