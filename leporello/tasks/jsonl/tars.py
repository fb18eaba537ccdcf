"""Reads WebDataset archives, where members with the same key are one row."""

from __future__ import annotations

import itertools
import json
import re
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import opened
from leporello.tasks.jsonl.lines import FileRows, Line

# Not the library `webdataset`: with `tarfile`, rows by key take thirty lines (decision 38).
_NAME = re.compile(r"((?:.*/)?[^/.]+)\.([^/]+)")  # key and extension, as WebDataset defines them
PACKED = re.compile("\0(\\d+) (\\d+) (\\d+) (.*)", re.DOTALL)  # file, offset, size and name
_BLOCK = 512  # bytes of a tar's blocks; an offset modulo this is the number of a row in a list


@dataclass(frozen=True)
class TarRows(FileRows):
    """An uncompressed tar, in which the members of each row are adjacent.

    `KEY.json` has the fields of a row, or a list of rows on the document. The document is another
    member, whose format follows from its content and suffix. The default id of a row is the key.

    Attributes:
        file: Number of the file in the task.
    """

    file: int

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields rows; see `FileRows.rows`."""
        try:
            with opened(self.local) as file:
                file.seek(offset - offset % _BLOCK)
                # `r:` rejects compression, in which no offset can be found; `unpacked` has removed
                # it before.
                with tarfile.open(fileobj=file, mode="r:") as archive:
                    groups = itertools.groupby(_members(archive), lambda pair: pair[0])
                    lines = (
                        line
                        for key, pairs in groups
                        for line in self._lines(archive, key, [member for _, member in pairs])
                    )
                    for line in itertools.islice(lines, offset % _BLOCK, None):
                        yield line._replace(number=number)
                        number += 1
        except (tarfile.TarError, EOFError) as error:
            raise UserError(f"{self.path}: is truncated or damaged: {error}") from None

    def member(self, packed: re.Match[str]) -> tuple[Path, bytes]:
        """Returns name and content of the document in a match of `PACKED`."""
        with opened(self.local) as file:
            file.seek(int(packed[2]))
            return Path(packed[4]), file.read(int(packed[3]))

    def _lines(
        self, archive: tarfile.TarFile, key: str, members: Sequence[tarfile.TarInfo]
    ) -> Iterator[Line]:
        offset, size = members[0].offset, sum(member.size for member in members)
        if size > self.limit:
            yield Line(0, offset, size, None)
            return
        described = [member for member in members if member.name.lower().endswith(".json")]
        documents = [member for member in members if member not in described]
        if len(documents) > 1 or len(described) > 1:
            names = ", ".join(member.name for member in members)
            raise UserError(f"{self.path}: {key!r} has several documents or JSON files: {names}")
        shared: dict[str, Any] = {"id": key, "document_id": key}
        for member in documents:
            place = f"{self.file} {member.offset_data} {member.size} {member.name}"
            # A reference, not the content: documents are read when their examples run. No path
            # contains NUL.
            shared["document"] = f"\0{place}"
        value: Any = {}
        for member in described:
            value = archive.extractfile(member).read()  # type: ignore[union-attr]  # a file
            with suppress(ValueError, RecursionError):  # reported with the other faults of rows
                value = json.loads(value)
        rows = value if isinstance(value, list) else [value]
        if len(rows) >= _BLOCK:
            raise UserError(
                f"{self.path}: {described[0].name} has {len(rows)} rows; {_BLOCK - 1} are allowed"
            )
        for i, row in enumerate(rows):
            content = row if isinstance(row, dict | bytes) else json.dumps(row).encode()
            numbered = {"id": f"{key}-{i}"} if len(rows) > 1 else {}
            yield Line(0, offset + i, size, content, {**shared, **numbered})


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Yields keys with files, of which one at a time is in memory."""
    while member := archive.next():
        archive.members.clear()  # type: ignore[attr-defined]  # would grow without bound
        if member.isfile() and (match := _NAME.fullmatch(member.name)):
            yield match[1], member
