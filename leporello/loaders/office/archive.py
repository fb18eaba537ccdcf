"""Zip archives that are documents: what is in them, unpacked within a budget."""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from leporello.core.environment.input_limits import ARCHIVE_ENTRIES
from leporello.core.errors import UserError
from leporello.core.records import Loss
from leporello.loaders.files import LARGEST, ZIP, Format

if TYPE_CHECKING:
    from lxml.etree import _Element

_BOMB = (2**26, 200)  # bytes unpacked, and how many times as many as packed: not more than both
_NAMES = re.compile(rb"PK\x03\x04.{22}([\x01-\xff])\0..([ -~]{1,255})", re.S)


def members(data: bytes) -> frozenset[str]:
    """Returns the names of what is in an archive, also in one that is cut; none if it is none."""
    if not data.startswith(b"PK\x03\x04"):
        return frozenset()
    try:
        _check_entries(data)  # first: each takes a kilobyte of memory
        return frozenset(zipfile.ZipFile(io.BytesIO(data)).namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        found = ((m[1][0], m[2]) for m in islice(_NAMES.finditer(data), ARCHIVE_ENTRIES))
        return frozenset(name[:length].decode() for length, name in found)


class ArchiveFormat(Format):
    """Format of zip archives that is recognised by one of their members.

    Attributes:
        member: Name of that member.
    """

    begins: ClassVar[re.Pattern[bytes]] = ZIP
    marked: ClassVar[bool] = True
    member: ClassVar[str]

    @classmethod
    def recognises(cls, head: bytes, path: Path) -> bool:  # noqa: ARG003 -- the content says it
        """Returns whether it is a zip archive with the member."""
        return cls.member in members(head)


def _check_entries(data: bytes) -> None:
    if (count := data.count(b"PK\x01\x02")) > ARCHIVE_ENTRIES:
        raise zipfile.BadZipFile(f"{count:,} entries, and {ARCHIVE_ENTRIES:,} are the most")


def unpacked(data: bytes, path: Path) -> zipfile.ZipFile:
    """Returns an archive whose members are whole and not too large together.

    Raises:
        UserError: It is broken, locked, or would grow beyond bounds.
    """
    try:
        _check_entries(data)
        archive = zipfile.ZipFile(io.BytesIO(data))
        size = sum(info.file_size for info in archive.infolist())
        if size > LARGEST or (size > _BOMB[0] and size > _BOMB[1] * len(data)):
            raise UserError(
                f"{path}: {len(data):,} bytes would be {size:,} unpacked, too many: a zip bomb?"
            )
        manifest = read(archive, "META-INF/manifest.xml")
        if any(i.flag_bits & 1 for i in archive.infolist()) or b":encryption-data" in manifest:
            raise UserError(f"{path}: is locked by a password; save an open copy first")
        broken = archive.testzip()  # Python unpacks no more than a member says that it has
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as error:
        raise UserError(f"{path}: is broken, or not whole ({error}); get it again") from None
    if broken:
        raise UserError(f"{path}: is broken in {broken}; get it again")
    return archive


def read(archive: zipfile.ZipFile, name: str) -> bytes:
    """Returns a member; nothing where there is none."""
    return archive.read(name) if name in archive.namelist() else b""


def parsed(data: bytes) -> _Element:
    """Returns the root of XML; an empty element where there is no data, nor more than its budget.

    No entity is taken from elsewhere, and libxml2 ends the growth of its own ones.
    """
    from lxml.etree import Element, XMLParser, fromstring

    if not data.strip():
        return Element("none")
    return fromstring(data, XMLParser(resolve_entities=False, no_network=True))


def losses_of(names: Iterable[str], kinds: Mapping[str, tuple[str, str]]) -> Iterator[Loss]:
    """Yields what members of an archive are lost.

    Args:
        names: Names of the members.
        kinds: Name of the loss and its reason, by a pattern that begins the names of members.
    """
    of = Counter(p for n in names for p in kinds if re.match(p, n))
    for pattern, count in of.items():
        yield Loss(*kinds[pattern], count=count)
