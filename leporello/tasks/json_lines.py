"""A task of one's own: a JSON Lines file, one question a row."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from leporello.errors import ConfigError, Fault, UserError
from leporello.loading import load
from leporello.metrics import check_metrics
from leporello.records import Document, Example
from leporello.tasks.rows import Row, RowError, example, parse
from leporello.tasks.scan import At, Group, Scan

__all__ = ["JsonLines"]

_SHOWN = 20  # faults; a file with more has usually one mistake in each row


@dataclass(frozen=True)
class JsonLines:
    """Questions from a JSON Lines file, one object a line.

    A row has `id`, its document as `document` (the text), `document_path` (a file: text, Markdown,
    subtitles, HTML, PDF) or `document_id`, and `question`, `references`, `choices`, `evidence`,
    `title`, `group`, `metadata` as far as there are any. Rows that share a `document_id` share the
    document, which one of them gives; so do rows with the same path or text. They need not stand
    together.

    Attributes:
        path: Of the file; `{split}` in it stands for the split.
        instruction: The prompt, put before what is read.
        metrics: What predictions are scored with.
        ignore: Fields of the rows that are passed over; other unknown fields are faults.
        split: Replaces `{split}` in the path.
        headers: Names for what follows (document, question, answer) in the prompt.
    """

    path: Path
    instruction: str = ""
    metrics: tuple[str, ...] = ("f1",)
    ignore: tuple[str, ...] = ()
    split: str = ""
    headers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_metrics(self.metrics)

    @property
    def file(self) -> Path:
        """The file of the split.

        Raises:
            UserError: A split without a place in the path, or the other way round.
        """
        has_place = "{split}" in str(self.path)
        if self.split and not has_place:
            raise UserError(
                f"split {self.split!r} is given, but the path {self.path} has no {{split}} in it"
            )
        if has_place and not self.split:
            raise UserError(f"the path {self.path} needs a split; give `split` or --split")
        return Path(str(self.path).replace("{split}", self.split))

    def check(self) -> None:
        """Reads all rows and documents once, one document at a time, and keeps no text.

        Raises:
            ConfigError: All faults, with their lines.
            UserError: The file cannot be read, or has no rows.
        """
        self._groups()

    def examples(self) -> Iterator[Example]:
        """Yields the examples, those on one document together, documents as they first appear.

        Raises:
            ConfigError: As `check` does, before the first example.
        """
        groups = self._groups()
        with self._opened() as file:
            for group in groups:
                found, faults = self._assemble(group, file)
                if faults:  # a document's file has changed since the check
                    raise _error(faults)
                yield from found

    def __len__(self) -> int:
        """Returns how many examples there are.

        Raises:
            ConfigError: As `check` does.
        """
        return sum(len(group.rows) for group in self._groups())

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the file and of the documents' files.

        Raises:
            ConfigError: As `check` does.
        """
        groups = self._groups()
        digest = hashlib.sha256(_file_hash(self.file))
        for path in dict.fromkeys(group.path for group in groups if group.path):
            digest.update(path.encode() + b"\0" + _file_hash(self._beside(path)))
        return digest.hexdigest()

    def _groups(self) -> tuple[Group, ...]:
        with self._opened() as file:
            found = os.fstat(file.fileno())
        return _checked(self, (found.st_ino, found.st_size, found.st_mtime_ns))

    def _opened(self) -> BinaryIO:
        try:
            return self.file.open("rb")
        except FileNotFoundError:
            raise UserError(f"{self.file}: there is no such file") from None
        except OSError as error:
            raise UserError(f"{self.file}: cannot be read: {error.strerror}") from None

    def _beside(self, document_path: str) -> Path:
        return self.file.parent / os.path.expanduser(document_path)  # noqa: PTH111 -- Path's raises where there is no such user

    def _assemble(self, group: Group, file: BinaryIO) -> tuple[list[Example], list[Fault]]:
        """Returns the examples on a document, and what is wrong with them."""
        assert group.source is not None
        source = self._row(group.source, file)
        try:
            document = self._document(group, source)
        except UserError as error:
            return [], [Fault(self.file, group.source.line, f"document_path: {error}")]
        found: list[Example] = []
        faults: list[Fault] = []
        for at in group.rows:
            row = source if at == group.source else self._row(at, file)
            try:
                found.append(example(row, document, self.instruction, self.headers))
            except RowError as error:
                faults += [Fault(self.file, at.line, text) for text in error.faults]
        return found, faults

    def _row(self, at: At, file: BinaryIO) -> Row:
        file.seek(at.offset)
        return parse(file.readline(), self.ignore)

    def _document(self, group: Group, source: Row) -> Document:
        if not group.path:
            return Document(group.id, source.document or "", group.title)
        document = load(self._beside(group.path), group.id)
        return dataclasses.replace(document, title=group.title) if group.title else document


@lru_cache(maxsize=8)
def _checked(task: JsonLines, stamp: tuple[int, int, int]) -> tuple[Group, ...]:  # noqa: ARG001 -- a file with another stamp is read again
    """Returns the documents and where their rows stand, all checked; once a process."""
    scan = Scan(task.file, task.ignore)
    with task._opened() as file:
        scan.read(file)
        for group in scan.groups.values():
            if group.uncertain and group.source:
                scan.faults += task._assemble(group, file)[1]
    if scan.faults:
        raise _error(scan.faults)
    if not scan.groups:
        raise UserError(f"{task.file}: has no rows")
    return tuple(scan.groups.values())


def _error(faults: Sequence[Fault]) -> ConfigError:
    """Returns the first faults as one error, and how many more there are."""
    ordered = sorted(faults, key=lambda fault: fault.line)
    shown, more = ordered[:_SHOWN], ordered[_SHOWN:]
    if more:
        text = f"… and {len(more)} more from here on"
        shown.append(Fault(more[0].file, more[0].line, text))
    return ConfigError(shown)


def _file_hash(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
