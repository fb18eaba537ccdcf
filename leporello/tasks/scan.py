"""One pass over a JSON Lines file: what is wrong with it, and where each document's rows stand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from leporello.errors import Fault, UserError
from leporello.loading.files import LARGEST
from leporello.loading.plain import marked_encoding
from leporello.tasks.places import Place, Places
from leporello.tasks.rows import RowError, parse

__all__ = ["Group", "Scan"]

_LONGEST = LARGEST  # bytes of a row
_TOGETHER = 1000  # rows that are noted at once


@dataclass(frozen=True, slots=True)
class Group:
    """The rows on one document: where they stand, never their texts.

    Attributes:
        rows: In the file's order.
        source: The first that gives the text or the path; None if none does.
        title: The document's: the first that a row gives.
    """

    rows: Sequence[Place]
    source: Place | None
    title: str

    @property
    def id(self) -> str:
        """The document's."""
        return self.rows[0].document

    @property
    def path(self) -> str:
        """The document's file, as the row names it; empty if it has none."""
        return self.source.path if self.source else ""


class Scan:
    """Reads rows and keeps their places.

    Attributes:
        faults: What is wrong so far.
    """

    def __init__(self, path: Path, ignore: Collection[str]) -> None:
        self.path = path
        self.ignore = ignore
        self.faults: list[Fault] = []
        self._places = Places(path)
        self._new: list[Place] = []
        self._parsed_all = True

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self._places)

    def groups(self) -> Iterator[Group]:
        """Yields the documents, as they first appear."""
        for rows in self._places.documents():
            source = next((row for row in rows if row.content), None)
            title = next((row.title for row in rows if row.title), "")
            yield Group(rows, source, title)

    def read(self, file: BinaryIO) -> None:
        """Takes every row of the file; empty lines are passed over.

        Raises:
            UserError: The file is in UTF-16 or UTF-32, or a line is longer than a document may be;
                or there is no room to note where rows stand.
        """
        marked = marked_encoding(file.read(4))
        if marked and marked[0] != "utf-8":
            raise UserError(
                f"{self.path}: is in {marked[0].upper()}; convert it:"
                f" iconv -f {marked[0].upper()} -t UTF-8 {self.path.name} > utf8.jsonl"
            )
        offset = file.seek(0)
        for number, line in enumerate(iter(partial(file.readline, _LONGEST), b""), 1):
            if len(line) == _LONGEST:
                raise UserError(
                    f"{self.path}:{number}: a row of more than {_LONGEST // 2**20} MiB, the most;"
                    " is this a JSON Lines file, one row a line?"
                )
            if line.strip():
                self._take(number, offset, line)
            offset += len(line)
        self._note()
        self._places.sort()
        self._compare()

    def _take(self, number: int, offset: int, line: bytes) -> None:
        try:
            row = parse(line, self.ignore)
        except RowError as error:
            self._parsed_all = False
            for text in error.faults:
                self._fault(number, text)
            return
        path = row.document_path or ""
        self._new.append(Place(number, offset, row.id, row.key, row.content, path, row.title))
        if len(self._new) == _TOGETHER:
            self._note()

    def _note(self) -> None:
        self._places.add(self._new)
        self._new.clear()

    def _fault(self, line: int, text: str) -> None:
        self.faults.append(Fault(self.path, line, text))

    def _compare(self) -> None:
        """Notes where rows contradict each other."""
        for line, row_id, first in self._places.repeats():
            self._fault(line, f"id {row_id!r} stands on line {first} already")
        for group in self.groups():
            if group.source is None:
                self._lacks_text(group)
            for row in group.rows:
                self._agrees(row, group)

    def _agrees(self, row: Place, group: Group) -> None:
        if group.source and row.content not in ("", group.source.content):
            before = f"line {group.source.line} has another"
            self._fault(row.line, f"document {group.id!r} is given a second text; {before}")
        if row.title not in ("", group.title):
            before = f"a line above has {group.title!r}"
            self._fault(
                row.line,
                f"document {group.id!r} is given a second title, {row.title!r}; {before}",
            )

    def _lacks_text(self, group: Group) -> None:
        if not self._parsed_all:  # the text may stand in a row that could not be read
            return
        self._fault(
            group.rows[0].line,
            f"document {group.id!r} has no text: none of its rows"
            " gives `document` or `document_path`",
        )
