"""WebDataset's archives: members of one name are a row, one of them the document."""

from __future__ import annotations

import itertools
import json
import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.files import opened
from leporello.tasks.jsonl.lines import Line

_NAME = re.compile(r"((?:.*/)?[^/.]+)\.([^/]+)")  # what WebDataset takes for key and extension
_PACKED = re.compile("\0(\\d+) (\\d+) (\\d+) (.*)", re.DOTALL)
_BLOCK = 512  # bytes of a tar's blocks: what an offset has beyond them tells the row of a list


@dataclass(frozen=True, slots=True)
class TarMember:
    """A document's file in a tar.

    Attributes:
        file: Number of the tar among the task's files.
        offset: Byte at which it begins in the tar.
        size: Size in bytes.
        name: Name of the member.
    """

    file: int
    offset: int
    size: int
    name: str

    def __str__(self) -> str:
        return f"\0{self.file} {self.offset} {self.size} {self.name}"

    @staticmethod
    def marks(text: str) -> bool:
        """Says whether a text may stand for one, at a glance."""
        return text.startswith("\0")

    @classmethod
    def of(cls, text: str) -> TarMember | None:
        """Returns what a text stands for, if it is none itself."""
        if found := _PACKED.fullmatch(text):
            return cls(int(found[1]), int(found[2]), int(found[3]), found[4])
        return None


@dataclass(slots=True)
class TarRows:
    """A tar without compression, in which the members of each row follow each other.

    `KEY.json` has the fields of a row, or a list of rows on the document; another member is the
    document, of a format by its content and suffix. Rows without an id are called by the key.

    Attributes:
        local: Path of the file on this machine.
        path: Path of the file as the user names it.
        limit: Bytes of a row's members at most.
        file: Number of the file among the task's.
    """

    seeks: ClassVar[bool] = True

    local: Path
    path: Path
    limit: int
    file: int

    def member(self, packed: TarMember) -> bytes:
        """Returns a document's file."""
        with opened(self.local) as file:
            file.seek(packed.offset)
            return file.read(packed.size)

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields the rows from the one on that has this offset."""
        try:
            with opened(self.local) as file:
                file.seek(offset - offset % _BLOCK)
                with tarfile.open(fileobj=file, mode="r:") as archive:
                    together = itertools.groupby(_members(archive), lambda named: named[0])
                    found = (line for key, of in together for line in self._of(archive, key, [*of]))
                    for line in itertools.islice(found, offset % _BLOCK, None):
                        yield line._replace(number=number)
                        number += 1
        except (tarfile.TarError, EOFError) as error:
            raise UserError(f"{self.path}: is cut off or damaged: {error}") from None

    def _of(
        self, archive: tarfile.TarFile, key: str, named: Sequence[tuple[str, tarfile.TarInfo]]
    ) -> Iterator[Line]:
        members = [member for _, member in named]
        at, size = members[0].offset, sum(member.size for member in members)
        told = [member for member in members if member.name.lower().endswith(".json")]
        documents = [member for member in members if member not in told]
        if size > self.limit:
            yield Line(0, at, size, None)
            return
        given: dict[str, Any] = {"id": key, "document_id": key}
        if len(documents) > 1 or len(told) > 1:
            names = ", ".join(member.name for member in members)
            raise UserError(f"{self.path}: {key!r} has more than one document, or JSON: {names}")
        if documents:
            member = documents[0]
            given["document"] = str(
                TarMember(self.file, member.offset_data, member.size, member.name)
            )
        content: Any = {}
        if told and (source := archive.extractfile(told[0])):
            content = source.read()
        try:
            value = json.loads(content) if told else content
        except (ValueError, RecursionError):  # told with the other faults of rows
            value = content
        if not isinstance(value, list):
            yield Line(0, at, size, value if isinstance(value, dict) else content, given)
            return
        if len(value) >= _BLOCK:
            raise UserError(
                f"{self.path}: {told[0].name} has {len(value)} rows; {_BLOCK - 1} is the most"
            )
        for i, row in enumerate(value):
            own = {**given, "id": f"{key}-{i}"} if len(value) > 1 else given
            yield Line(
                0, at + i, size, row if isinstance(row, dict) else json.dumps(row).encode(), own
            )


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Yields files behind their keys, in the memory of one."""
    while member := archive.next():
        archive.members.clear()  # type: ignore[attr-defined]  # which grows without end
        if member.isfile() and (found := _NAME.fullmatch(member.name)):
            yield found[1], member
