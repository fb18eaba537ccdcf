"""The first of two passes over a benchmark's rows: what is wrong, and what stands on what."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from leporello.core.errors import ConfigError, EmptySubsetError, Fault, UserError
from leporello.core.records import JSON, Document, DocumentRows, Example, Span
from leporello.tasks.jsonl.schema import RowError
from leporello.tasks.official.archives import Archive
from leporello.tasks.official.fields import decode

# Takes a row apart, given its number from 0: see `Benchmark.take_all`.
Take: TypeAlias = Callable[[int, Mapping[str, Any]], Sequence[Example]]

_MOST = 20  # faults after which a file is given up
_NOWHERE = Document("", "")
_FIELDS = tuple(each.name for each in dataclasses.fields(Example) if each.name != "document")


@dataclass(slots=True)
class RowOffset:
    """An example whose row brings no new document.

    Attributes:
        line: Line of its first row, from 1.
        example: The example without its document.
    """

    line: int
    example: Example


@dataclass(slots=True)
class DocumentGroup:
    """What is kept of a document: all but its text.

    Attributes:
        line: Line of the row that brings the text, from 1.
        number: Number of that row, from 0; lines that are blank are none.
        size: Size of that row, in bytes.
        key: Key of the document, as `document_key` returns it.
        first: Id of that row's example.
        references: References of that example's further rows.
        fault: Message of what is wrong with these.
        others: The other examples on the document.
    """

    line: int
    number: int
    size: int
    key: str
    first: str
    references: tuple[str, ...] = ()
    fault: str = ""
    others: list[RowOffset] = field(default_factory=list)

    def rows(self) -> DocumentRows:
        """Returns the group as a task's layout has it."""
        others: list[JSON] = [[row.line, _packed(row.example)] for row in self.others]
        at = (self.line, self.number, self.size, self.key, self.first)
        values: list[JSON] = [*at, [*self.references], self.fault, others]
        return DocumentRows(1 + len(others), self.size, values)

    @classmethod
    def of(cls, document: DocumentRows) -> DocumentGroup:
        """Returns the group that `rows` was called on."""
        values: Any = document.rows
        line, number, size, key, first, references, fault, others = values
        rows = [RowOffset(at, _unpacked(packed)) for at, packed in others]
        return cls(line, number, size, key, first, tuple(references), fault, rows)


@dataclass(frozen=True, slots=True)
class _KnownRows:
    """Where an example is kept: as the first of its group, or at a place in `others`."""

    group: DocumentGroup
    at: int | None
    question: str

    @property
    def line(self) -> int:
        return self.group.line if self.at is None else self.group.others[self.at].line


class RowIndex:
    """Checks rows, and notes what stands on which document.

    Attributes:
        sha256: SHA-256 of all rows, when they have been read.
    """

    def __init__(self, take: Take, archive: Archive) -> None:
        self.sha256 = ""
        self._take, self._archive = take, archive
        self._faults: list[Fault] = []
        self._documents: dict[str, DocumentGroup] = {}
        self._ids: dict[str, _KnownRows] = {}

    def read(self) -> Iterator[DocumentGroup]:
        """Reads all rows, then yields the documents, as they first appear.

        Raises:
            ConfigError: Rows that are none, or that contradict each other; the first of them.
            UserError: The file is damaged, or has no rows.
        """
        digest, number = hashlib.sha256(), 0
        for line, content in self._archive.lines():
            digest.update(content)
            if not content.isspace():
                self._row(line, number, content)
                number += 1
        if self._faults:
            raise ConfigError(self._faults)
        if not self._documents:
            if number:
                raise EmptySubsetError(
                    f"{self._archive}: none of its {number} rows is of this task"
                )
            raise UserError(f"{self._archive}: has no rows")
        self.sha256 = digest.hexdigest()
        yield from self._documents.values()

    def _row(self, line: int, number: int, content: bytes) -> None:
        try:
            for example in self._take(number, decode(content)):
                self._note(line, number, len(content), example)
        except RowError as error:
            self._faults += [Fault(self._archive.path, line, text) for text in error.faults]
            if len(self._faults) >= _MOST:
                last = Fault(self._archive.path, line, "… and what follows was not looked at")
                raise ConfigError([*self._faults, last]) from None

    def _note(self, line: int, number: int, size: int, example: Example) -> None:
        key = document_key(example.document)
        if earlier := self._ids.get(example.id):
            self._merge(earlier, key, example)
            return
        group, at = self._documents.get(key), None
        if group is None:
            group = self._documents[key] = DocumentGroup(line, number, size, key, example.id)
        else:
            at = len(group.others)
            group.others.append(RowOffset(line, dataclasses.replace(example, document=_NOWHERE)))
        self._ids[example.id] = _KnownRows(group, at, example.question)

    def _merge(self, first: _KnownRows, key: str, example: Example) -> None:
        """Adds what a further row of an example says."""
        same = {"document": first.group.key == key, "question": first.question == example.question}
        if differing := [field for field, is_same in same.items() if not is_same]:
            another = f"another {differing[0]}"
            raise RowError([f"id {example.id!r} stands on line {first.line} with {another}"])
        if first.at is None:
            first.group.references += example.references
            first.group.fault = first.group.fault or example.fault
        else:
            row = first.group.others[first.at]
            row.example = merged(row.example, example.references, example.fault)


def document_key(document: Document) -> str:
    """Returns a hash of a document's text and parts, by which rows share it."""
    digest = hashlib.sha256(document.text.encode())
    for part in document.parts:
        digest.update(b"%d-%d " % (part.start, part.end))
    return digest.hexdigest()


def merged(example: Example, references: tuple[str, ...], fault: str) -> Example:
    """Returns an example with the references and the fault of a further row."""
    return dataclasses.replace(
        example, references=example.references + references, fault=example.fault or fault
    )


def _packed(example: Example) -> dict[str, JSON]:
    """Returns an example without its document as JSON, empty fields left out."""
    fields = {name: value for name in _FIELDS if (value := getattr(example, name))}
    if example.evidence:
        fields["evidence"] = [[span.start, span.end] for span in example.evidence]
    return {name: [*value] if isinstance(value, tuple) else value for name, value in fields.items()}


def _unpacked(packed: Mapping[str, Any]) -> Example:
    fields: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in packed.items()
    }
    fields["evidence"] = tuple(Span(*ends) for ends in packed.get("evidence", ()))
    return Example(document=_NOWHERE, **fields)
