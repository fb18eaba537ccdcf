"""First of two passes over a benchmark's rows: checks them, and groups examples by document."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from leporello.core.errors import ConfigError, EmptySubsetError, Fault, UserError
from leporello.core.records import JSON, Document, DocumentRows, Example, Span
from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.official.archives import Archive

# Parses one row, given its number from 0: see `Benchmark.take`.
Take: TypeAlias = Callable[[int, Mapping[str, Any]], Iterable[Example]]

_MOST_FAULTS = 20  # reading stops after as many
_NOWHERE = Document("", "")
_FIELDS = tuple(f.name for f in dataclasses.fields(Example) if f.name != "document")


@dataclass(slots=True)
class DocumentGroup:
    """The examples on a document, without its text."""

    number: int  # number of the row with the text, from 0; blank lines do not count
    size: int  # size of that row, in bytes
    key: str  # key of the document, from `document_key`
    # Lines of first rows, with examples, by id in the order of the rows. The first example has only
    # id, question and data of further rows; its first row, which has the document, is read again.
    examples: dict[str, tuple[int, Example]]

    def rows(self) -> DocumentRows:
        """Returns the group for a task's layout."""
        examples: list[JSON] = [[line, _packed(e)] for line, e in self.examples.values()]
        values: list[JSON] = [self.number, self.size, self.key, examples]
        return DocumentRows(len(examples), self.size, values)

    @classmethod
    def of(cls, document: DocumentRows) -> DocumentGroup:
        """Returns the group of a document in a layout; the inverse of `rows`."""
        values: Any = document.rows
        number, size, key, examples = values
        by_id = {packed["id"]: (line, _unpacked(packed)) for line, packed in examples}
        return cls(number, size, key, by_id)


class RowIndex:
    """Checks rows, and groups examples by document."""

    def __init__(self, take: Take, archive: Archive) -> None:
        self.facts: dict[str, JSON] = {}
        self._take, self._archive = take, archive
        self._faults: list[Fault] = []
        self._documents: dict[str, DocumentGroup] = {}
        self._ids: dict[str, DocumentGroup] = {}
        self._without: dict[str, None] = {}  # ids of examples without a reference

    def read(self) -> Iterator[DocumentRows]:
        """Reads all rows, then yields the documents in the order of their first rows."""
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
                fault = f"none of its {number} rows belongs to this task"
                raise EmptySubsetError(f"{self._archive}: {fault}")
            raise UserError(f"{self._archive}: has no rows")
        self._mark_missing()
        self.facts["sha256"] = digest.hexdigest()
        yield from (group.rows() for group in self._documents.values())

    def _mark_missing(self) -> None:
        """Marks examples without a reference, unless the split has none at all."""
        if len(self._without) == len(self._ids):
            return
        for name in self._without:
            line, stored = self._ids[name].examples[name]
            fault = stored.fault or "no gold answer, although other rows of the file have one"
            self._ids[name].examples[name] = line, dataclasses.replace(stored, fault=fault)

    def _row(self, line: int, number: int, content: bytes) -> None:
        try:
            for example in self._take(number, decode(content, strict=False)):
                self._group(line, number, len(content), example)
        except RowError as error:
            self._faults += [Fault(self._archive.path, line, text) for text in error.faults]
            if len(self._faults) >= _MOST_FAULTS:
                last = Fault(self._archive.path, line, "… reading stopped here")
                raise ConfigError([*self._faults, last]) from None

    def _group(self, line: int, number: int, size: int, example: Example) -> None:
        if not example.id:
            raise RowError(["the row's id is empty"])
        if example.references or example.fault:
            self._without.pop(example.id, None)
        elif example.id not in self._ids:
            self._without[example.id] = None
        key = document_key(example.document)
        if earlier := self._ids.get(example.id):
            _add(earlier, key, example)
            return
        if group := self._documents.get(key):
            stored = dataclasses.replace(example, document=_NOWHERE)
        else:
            group = self._documents[key] = DocumentGroup(number, size, key, {})
            stored = Example(example.id, _NOWHERE, example.question)
        group.examples[example.id] = line, stored
        self._ids[example.id] = group


def _add(group: DocumentGroup, key: str, further: Example) -> None:
    """Adds the references and fault of another row of an example."""
    line, stored = group.examples[further.id]
    differing = "question" if stored.question != further.question else ""
    if differing := "document" if group.key != key else differing:
        raise RowError([f"id {further.id!r} has another {differing} on line {line}"])
    group.examples[further.id] = line, merged(stored, further)


def document_key(document: Document) -> str:
    """Returns a hash of a document's text and parts; rows with the same hash share it."""
    digest = hashlib.sha256(document.text.encode())
    for part in document.parts:
        digest.update(b"%d-%d " % (part.start, part.end))
    return digest.hexdigest()


def merged(example: Example, further: Example) -> Example:
    """Returns an example with the references and fault of another row added."""
    references = example.references + further.references
    return dataclasses.replace(example, references=references, fault=example.fault or further.fault)


def _packed(example: Example) -> dict[str, JSON]:
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
