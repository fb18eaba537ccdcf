"""A task of one's own: a JSON Lines file, one question a row."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from io import BufferedReader
from pathlib import Path

from leporello.errors import ConfigError, Fault, UserError
from leporello.loading import load
from leporello.loading.files import file_hash, opened
from leporello.metrics import check_metrics
from leporello.records import Document, Example
from leporello.remote import RemotePath, is_url, place
from leporello.tasks.places import Place
from leporello.tasks.rows import Row, RowError, example, parse
from leporello.tasks.scan import Group, Scan

__all__ = ["JsonLines"]

_log = logging.getLogger("leporello")

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
        path: Of the file, or its URL; `{split}` in it stands for the split.
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
        return place(str(self.path).replace("{split}", self.split))

    def check(self) -> None:
        """Reads all rows once, and no document's file.

        Raises:
            ConfigError: All faults of rows, with their lines.
            UserError: The file cannot be read, or has no rows.
        """
        self._scan()

    def examples(self) -> Iterator[Example]:
        """Yields the examples, those on one document together, documents as they first appear.

        Where a document's file cannot be read, or evidence is not in it, the examples concerned
        have a `fault`, and all others are as if these were not there.

        Raises:
            ConfigError: As `check` does, before the first example.
        """
        scan = self._scan()
        with self._opened() as file:
            for group in scan.groups():
                yield from self._assemble(group, file)

    def __len__(self) -> int:
        """Returns how many examples there are.

        Raises:
            ConfigError: As `check` does.
        """
        return len(self._scan())

    def fingerprint(self) -> str:
        """Returns the SHA-256 of the file and of the documents' files.

        Files that cannot be read are told in a warning; that they cannot enters the hash.

        Raises:
            ConfigError: As `check` does.
        """
        scan = self._scan()
        with self._opened() as file:
            digest = hashlib.sha256(hashlib.file_digest(file, "sha256").digest())
        paths = dict.fromkeys(group.path for group in scan.groups() if group.path)
        faults: list[UserError] = []
        for path in paths:
            digest.update(path.encode() + b"\0")
            try:
                digest.update(file_hash(self._beside(path)))
            except UserError as error:
                faults.append(error)
        if faults:
            told = f"{len(faults)} of {len(paths)} documents' files cannot be read, so that the"
            more = ", …" if len(faults) > 1 else ""
            _warn(f"{self.file}: {told} examples on them will fail: {faults[0]}{more}")
        return digest.hexdigest()

    def _scan(self) -> Scan:
        with self._opened() as file:
            found = os.fstat(file.fileno())
        return _checked(self, (found.st_ino, found.st_size, found.st_mtime_ns))

    def _opened(self) -> BufferedReader:
        return opened(self.file)

    def _beside(self, document_path: str) -> Path:
        if is_url(document_path):
            return self._elsewhere(document_path)
        if isinstance(self.file, RemotePath):
            return self.file.parent / document_path
        return self.file.parent / os.path.expanduser(document_path)  # noqa: PTH111 -- Path's raises where there is no such user

    def _elsewhere(self, url: str) -> Path:
        """Returns what a row names by a URL; rows from elsewhere name no file of this machine."""
        found = place(url)
        if isinstance(self.file, RemotePath) and not isinstance(found, RemotePath):
            raise UserError(f"{url}: is a file on this machine, and it is named at {self.file}")
        return found

    def _assemble(self, group: Group, file: BufferedReader) -> Iterator[Example]:
        """Yields the examples on a document, those with faults marked."""
        assert group.source is not None
        source = self._row(group.source, file)
        document, fault = self._document(group, source)
        for at in group.rows:
            row = source if at == group.source else self._row(at, file)
            yield self._example(row, at, document, fault)

    def _row(self, at: Place, file: BufferedReader) -> Row:
        file.seek(at.offset)
        try:
            return parse(file.readline(), self.ignore)
        except RowError:
            raise UserError(f"{self.file}: has changed while it was read; run again") from None

    def _document(self, group: Group, source: Row) -> tuple[Document, str]:
        """Returns the document, or an empty one and why it could not be read."""
        if not group.path:
            return Document(group.id, source.document or "", group.title), ""
        try:
            path = self._beside(group.path)
            document = load(path, group.id)
        except UserError as error:
            told = str(error)
        except Exception as error:  # a broken file at which a format's library trips
            told = f"{path}: {type(error).__name__}: {error}"
        else:
            title = group.title or document.title
            return dataclasses.replace(document, title=title), ""
        return Document(group.id, "", group.title), f"document_path: {told}"

    def _example(self, row: Row, at: Place, document: Document, fault: str) -> Example:
        given = (document, self.instruction, self.headers)
        if not fault:
            try:
                return example(row, *given)
            except RowError as error:
                fault = str(error)
        bare = example(row.model_copy(update={"evidence": []}), *given)
        return dataclasses.replace(bare, fault=f"{self.file.name}:{at.line}: {fault}")


@lru_cache(maxsize=8)
def _checked(task: JsonLines, stamp: tuple[int, int, int]) -> Scan:  # noqa: ARG001 -- a file with another stamp is read again
    """Returns the documents and where their rows stand, all checked; once a process."""
    scan = Scan(task.file, task.ignore)
    with task._opened() as file:
        scan.read(file)
    if scan.faults:
        raise _error(scan.faults)
    if not len(scan):
        raise UserError(f"{task.file}: has no rows")
    return scan


@cache
def _warn(text: str) -> None:
    """Warns once a process: a run takes the fingerprint before and after."""
    _log.warning(text)


def _error(faults: Sequence[Fault]) -> ConfigError:
    """Returns the first faults as one error, and how many more there are."""
    ordered = sorted(faults, key=lambda fault: fault.line)
    shown, more = ordered[:_SHOWN], ordered[_SHOWN:]
    if more:
        text = f"… and {len(more)} more from here on"
        shown.append(Fault(more[0].file, more[0].line, text))
    return ConfigError(shown)
