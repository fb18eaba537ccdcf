"""Plain text: UTF-8, or whatever its byte order mark says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.loaders.files import Format
from leporello.text.encodings import marked_encoding
from leporello.text.outline import Extracted

__all__ = ["Text", "decode"]


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
