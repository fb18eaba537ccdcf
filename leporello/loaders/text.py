"""Plain text in any encoding: what its mark says, UTF-8, or what it looks like."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.core.records import Loss
from leporello.loaders.files import Format, is_binary
from leporello.text.encodings import guessed_encoding, marked_encoding
from leporello.text.outline import Extracted

_REPLACED = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Text(Format):
    """Plain text, to the character.

    Attributes:
        encoding: Encoding of files without a byte order mark; where it is empty, UTF-8, or what a
            file looks like that is none.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".text", ".log")

    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text as it stands, line endings included.

        Raises:
            UserError: It is no text; or there is no such encoding.
        """
        return decoded(data, path, self.encoding)


def decoded(data: bytes, path: Path, encoding: str = "") -> Extracted:
    """Returns the text of a file; what was guessed is a note, what is in no encoding a loss.

    Args:
        data: Bytes of the file; a byte order mark wins over `encoding`, and is left out.
        path: Path of the file.
        encoding: Encoding as it is declared; guessed where it is empty.

    Raises:
        UserError: It is no text; or there is no such encoding.
    """
    name, skipped = marked_encoding(data) or (encoding, 0)
    body = data[skipped:]
    notes: tuple[str, ...] = ()
    if not name:
        guessed = guessed_encoding(body)
        if not guessed.startswith("utf") and is_binary(data):
            raise UserError(f"{path}: is not read: it looks like binary data")
        told = f"{path.name} is not UTF-8 and says no encoding: read as {guessed.upper()}; if that"
        notes = (f"{told} is wrong, give loader {{class: Text, encoding: …}}",) if guessed else ()
        name = guessed or "utf-8"
    try:
        text = body.decode(name)
    except LookupError:
        raise UserError(
            f"{path}: there is no encoding {name!r}; name one, such as cp1252"
        ) from None
    except UnicodeDecodeError:
        text = body.decode(name, "replace")
    own = body.count(_REPLACED.encode(name)) if name.startswith("utf") else 0
    text = text.replace("\0", _REPLACED)  # no tokenizer takes a NUL
    bad = text.count(_REPLACED) - own
    why = f"not {name.upper()}; {_REPLACED} stands for them"
    losses = (Loss("undecodable bytes", why, characters=bad, count=bad),) if bad > 0 else ()
    return Extracted(text, losses=losses, notes=notes)
