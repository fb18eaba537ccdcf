"""Zip archives that are documents: their members, unpacked within limits."""

import io
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from leporello.core.environment.input_limits import ARCHIVE_ENTRIES
from leporello.core.errors import UserError
from leporello.core.records import Loss
from leporello.loaders.files import LARGEST, ZIP, Format

if TYPE_CHECKING:
    from lxml.etree import _Element

Element: TypeAlias = "_Element"  # lxml is imported only where a file is parsed
_BOMB = (2**26, 200)  # unpacked bytes and growth factor; exceeding both is refused


def members(data: bytes) -> frozenset[str]:
    """Returns the names of an archive's members; empty if it is not an intact archive."""
    try:
        _check_entries(data)  # first: each takes a kilobyte of memory
        return frozenset(zipfile.ZipFile(io.BytesIO(data)).namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return frozenset()


class ArchiveFormat(Format):
    """Format of zip archives with a certain member."""

    begins = ZIP
    marked = True
    member: ClassVar[str]

    @classmethod
    def recognises(cls, head: bytes, path: Path) -> bool:  # noqa: ARG003 -- the content suffices
        """Returns whether the file is a zip archive with the member."""
        return cls.member in members(head)


def _check_entries(data: bytes) -> None:
    if (count := data.count(b"PK\x01\x02")) > ARCHIVE_ENTRIES:
        raise zipfile.BadZipFile(f"{count:,} entries, more than {ARCHIVE_ENTRIES:,}")


def is_bomb(size: int, packed: int) -> bool:
    """Returns whether the members of an archive are too large, or many times as large as it."""
    return size > min(LARGEST, max(_BOMB[0], _BOMB[1] * packed))


def unpacked(data: bytes, path: Path) -> zipfile.ZipFile:
    """Opens an archive; raises UserError if it is corrupt, locked, or would grow too large.

    Reading a corrupt member raises `BadZipFile`, so that other members can be read.
    """
    try:
        _check_entries(data)
        archive = zipfile.ZipFile(io.BytesIO(data))
        size = sum(info.file_size for info in archive.infolist())
        if is_bomb(size, len(data)):
            raise UserError(
                f"{path}: {len(data):,} bytes would unpack to {size:,}, too many: a zip bomb?"
            )
        manifest = read(archive, "META-INF/manifest.xml")
        if any(i.flag_bits & 1 for i in archive.infolist()) or b":encryption-data" in manifest:
            raise UserError(f"{path}: is locked by a password; save an open copy first")
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError) as error:
        raise UserError(f"{path}: is corrupt or incomplete ({error}); download it again") from None
    return archive


def read(archive: zipfile.ZipFile, name: str) -> bytes:
    """Returns the bytes of a member; empty if it does not exist."""
    return archive.read(name) if name in archive.namelist() else b""


def beside(folder: str, target: str) -> str:
    """Returns the name of a member that another member in a folder refers to."""
    return posixpath.normpath(posixpath.join("/", folder, target))[1:]


def parsed(data: bytes) -> Element:
    """Parses XML and returns its root; an empty element without data."""
    from lxml import etree

    if not data.strip():
        return etree.Element("none")
    # No external entities; libxml2 limits the growth of internal ones.
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def title_of(archive: zipfile.ZipFile) -> str:
    """Returns the title in an Office file's properties; may be empty."""
    properties = parsed(read(archive, "docProps/core.xml"))
    return properties.findtext("{http://purl.org/dc/elements/1.1/}title") or ""


def losses_of(names: Iterable[str], kinds: Mapping[str, tuple[str, str]]) -> Iterator[Loss]:
    """Yields the losses of an archive; names and reasons are by patterns of the members' names."""
    of = Counter(p for n in names for p in kinds if re.match(p, n))
    for pattern, count in of.items():
        yield Loss(*kinds[pattern], count=count)
