"""The lines of a JSON Lines file, in bounded memory, and how faults of many are told."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

from leporello.core.errors import ConfigError, Fault, UserError
from leporello.text.encodings import looks_like

_SHOWN = 20  # faults; a file with more has usually one mistake in each row
_BLOCK = 1 << 20  # bytes that are skipped at once
_HEAD = 1 << 12  # bytes that tell the encoding


class Line(NamedTuple):
    """A row as it stands in its file.

    Attributes:
        number: Number of the line, or of the row, from 1.
        offset: Where reading begins to find it: a byte, or the number of a group of rows.
        size: Size in bytes.
        content: JSON of an object, or the object; None for a row that is larger than it may be.
        given: Fields that the file gives the row beside its own, which go first.
    """

    number: int
    offset: int
    size: int
    content: bytes | Mapping[str, Any] | None
    given: Mapping[str, Any] = MappingProxyType({})


def lines(
    file: IO[bytes], path: Path, limit: int, number: int = 1, offset: int = 0
) -> Iterator[Line]:
    """Yields the lines that are not blank, in the memory of the largest that may be read.

    Args:
        file: The file, from which nothing was read.
        path: Path of the file, for messages.
        limit: Bytes of a line at most; of a longer one there is no content.
        number: Number of the line at the offset.
        offset: Byte with which to begin.

    Raises:
        UserError: The file is in UTF-16 or UTF-32.
    """
    if not offset and (found := _wide_encoding(file.read(_HEAD))):
        raise UserError(
            f"{path}: is in {found}, and JSON lines are UTF-8; convert it:"
            f" iconv -f {found} -t UTF-8 {path.name} > utf8.jsonl"
        )
    file.seek(offset)
    for at, (content, size) in zip(itertools.count(number), pieces(file, limit)):
        if size > limit:
            yield Line(at, offset, size, None)
        elif not content.isspace():
            yield Line(at, offset, size, content)
        offset += size


def pieces(file: IO[bytes], limit: int) -> Iterator[tuple[bytes, int]]:
    """Yields each line, cut behind the first byte too many, and how many bytes it has."""
    while content := file.readline(limit + 1):
        size = len(content)
        more = content
        while size > limit and more and not more.endswith(b"\n"):
            more = file.readline(_BLOCK)
            size += len(more)
        yield content, size


def _wide_encoding(head: bytes) -> str:
    found = looks_like(head)
    return found if found.startswith(("UTF-16", "UTF-32")) else ""


def raise_faults(faults: Sequence[Fault]) -> None:
    """Raises the first faults as one ConfigError, and how many more there are; if there are any."""
    ordered = sorted(faults, key=lambda fault: (str(fault.file), fault.line))
    shown, more = ordered[:_SHOWN], ordered[_SHOWN:]
    if more:
        text = f"… and {len(more)} more from here on"
        shown.append(Fault(more[0].file, more[0].line, text))
    if shown:
        raise ConfigError(shown)
