"""The first of two passes over a benchmark's rows: faults, and the examples on each document."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from leporello.core.errors import ConfigError, EmptySubsetError, Fault, UserError
from leporello.core.records import JSON, Document, DocumentRows, Example, Span
from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.official.archives import Archive

# Takes a row apart, given its number from 0: see `Benchmark.take_all`.
Take: TypeAlias = Callable[[int, Mapping[str, Any]], Sequence[Example]]

_MOST = 20  # faults after which a file is given up
_NOWHERE = Document("", "")
_FIELDS = tuple(each.name for each in dataclasses.fields(Example) if each.name != "document")


@dataclass(slots=True)
class DocumentGroup:
    """The examples on a document, without its text.

    Attributes:
        number: Number of the row that has the text, from 0; blank lines do not count.
        size: Size of that row, in bytes.
        key: Key of the document, as `document_key` returns it.
        examples: The examples by id, in the order of their rows, each with the line of its first
            row. Of the first example only id, question, and what further rows added; its row,
            which has the document, is read again.
    """

    number: int
    size: int
    key: str
    examples: dict[str, tuple[int, Example]]

    def rows(self) -> DocumentRows:
        """Returns the group as a task's layout has it."""
        examples: list[JSON] = [[line, _packed(e)] for line, e in self.examples.values()]
        values: list[JSON] = [self.number, self.size, self.key, examples]
        return DocumentRows(len(examples), self.size, values)

    @classmethod
    def of(cls, document: DocumentRows) -> DocumentGroup:
        """Returns the group that `rows` was called on."""
        values: Any = document.rows
        number, size, key, examples = values
        known = {packed["id"]: (line, _unpacked(packed)) for line, packed in examples}
        return cls(number, size, key, known)


class RowIndex:
    """Checks rows, and notes what stands on which document.

    Attributes:
        facts: SHA-256 of all rows as `sha256`, when they have been read.
    """

    def __init__(self, take: Take, archive: Archive) -> None:
        self.facts: dict[str, JSON] = {}
        self._take, self._archive = take, archive
        self._faults: list[Fault] = []
        self._documents: dict[str, DocumentGroup] = {}
        self._ids: dict[str, DocumentGroup] = {}

    def read(self) -> Iterator[DocumentRows]:
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
        self.facts["sha256"] = digest.hexdigest()
        yield from (group.rows() for group in self._documents.values())

    def _row(self, line: int, number: int, content: bytes) -> None:
        try:
            for example in self._take(number, decode(content, strict=False)):
                self._note(line, number, len(content), example)
        except RowError as error:
            self._faults += [Fault(self._archive.path, line, text) for text in error.faults]
            if len(self._faults) >= _MOST:
                last = Fault(self._archive.path, line, "… and what follows was not looked at")
                raise ConfigError([*self._faults, last]) from None

    def _note(self, line: int, number: int, size: int, example: Example) -> None:
        if not example.id:
            raise RowError(["the row's id is empty"])
        key = document_key(example.document)
        if earlier := self._ids.get(example.id):
            _add(earlier, key, example)
            return
        if group := self._documents.get(key):
            known = dataclasses.replace(example, document=_NOWHERE)
        else:
            group = self._documents[key] = DocumentGroup(number, size, key, {})
            known = Example(example.id, _NOWHERE, example.question)
        group.examples[example.id] = line, known
        self._ids[example.id] = group


def _add(group: DocumentGroup, key: str, further: Example) -> None:
    """Adds the references and the fault of a further row of an example."""
    line, known = group.examples[further.id]
    differing = "question" if known.question != further.question else ""
    if differing := "document" if group.key != key else differing:
        raise RowError([f"id {further.id!r} stands on line {line} with another {differing}"])
    group.examples[further.id] = line, merged(known, further)


def document_key(document: Document) -> str:
    """Returns a hash of a document's text and parts, by which rows share it."""
    digest = hashlib.sha256(document.text.encode())
    for part in document.parts:
        digest.update(b"%d-%d " % (part.start, part.end))
    return digest.hexdigest()


def merged(example: Example, further: Example) -> Example:
    """Returns an example with the references and the fault of a further row."""
    references = example.references + further.references
    return dataclasses.replace(example, references=references, fault=example.fault or further.fault)


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
