"""Checks the rows of benchmarks in one pass, and groups examples by document."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from leporello.core.errors import ConfigError, EmptySubsetError, Fault, UserError
from leporello.core.records import JSON, Document, DocumentRows, Example, Span
from leporello.tasks.jsonl.formats import Line
from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.layouts import Layout
from leporello.tasks.official.archives import Archive

# Parses one row, given its number from 0: see `Benchmark._take`.
Take: TypeAlias = Callable[[int, Mapping[str, Any]], Iterable[Example]]

_MOST_FAULTS = 20  # reading stops after as many
_NOWHERE = Document("", "")
_FIELDS = tuple(f.name for f in dataclasses.fields(Example) if f.name != "document")


@dataclass(slots=True)
class _Group:
    """The examples on a document, without its text."""

    document: dict[str, JSON]  # the text's place, and other fields of `Document`
    key: str  # key of the document, from `_key`
    size: int  # size of the document's first row, in bytes
    # Lines of first rows, with examples, by id in the order of the rows.
    examples: dict[str, tuple[int, Example]] = field(default_factory=dict)


class RowIndex:
    """Checks rows, and groups examples by document."""

    def __init__(self, take: Take, archive: Archive, store: Callable[[bytes], int]) -> None:
        """Takes a function that stores the text of documents, and returns its start."""
        self._take, self._archive, self._store = take, archive, store
        self._faults: list[Fault] = []
        self._documents: dict[str, _Group] = {}  # by key
        self._groups: dict[str, _Group] = {}  # by id of examples

    def read(self) -> Iterator[DocumentRows]:
        """Reads all rows, then yields the documents in the order of their first rows."""
        number = -1
        for number, line in enumerate(self._archive.rows()):
            self._row(number, line)
        if self._faults:
            raise ConfigError(self._faults)
        if not self._documents:
            if number < 0:
                raise UserError(f"{self._archive}: has no rows")
            fault = f"none of its {number + 1} rows belongs to this task"
            raise EmptySubsetError(f"{self._archive}: {fault}")
        groups = self._documents.values()
        has_gold = any(e.references or e.fault for g in groups for _, e in g.examples.values())
        for group in groups:
            examples: list[JSON] = [
                self._packed(line, example, has_gold=has_gold)
                for line, example in group.examples.values()
            ]
            rows: JSON = {"key": group.key, **group.document, "examples": examples}
            yield DocumentRows(len(examples), group.size, rows)

    def _row(self, number: int, line: Line) -> None:
        try:
            for example in self._take(number, decode(line.content, strict=False)):
                self._group(line, example)
        except RowError as error:
            self._faults += [Fault(self._archive.path, line.number, text) for text in error.faults]
            if len(self._faults) >= _MOST_FAULTS:
                last = Fault(self._archive.path, line.number, "… reading stopped here")
                raise ConfigError([*self._faults, last]) from None

    def _group(self, line: Line, example: Example) -> None:
        if not example.id:
            raise RowError(["the row's id is empty"])
        document, key = example.document, _key(example.document)
        if earlier := self._groups.get(example.id):
            _merge(earlier, key, example)
            return
        if not (group := self._documents.get(key)):
            text = document.text.encode()
            fields: dict[str, JSON] = {"text": [self._store(text), len(text)]}
            fields |= {"title": document.title, "parts": [[p.start, p.end] for p in document.parts]}
            group = self._documents[key] = _Group(fields, key, line.size)
        group.examples[example.id] = line.number, dataclasses.replace(example, document=_NOWHERE)
        self._groups[example.id] = group

    def _packed(self, line: int, example: Example, *, has_gold: bool) -> dict[str, JSON]:
        """Returns an example for the layout, which has either references or a fault."""
        fault = example.fault
        if has_gold and not fault and not example.references:
            fault = "no gold answer, although other rows of the file have one"
        if fault:
            fault = f"{self._archive.path.name}:{line}: {fault}"
            example = dataclasses.replace(example, references=(), fault=fault)
        fields = {name: value for name in _FIELDS if (value := getattr(example, name))}
        if example.evidence:
            fields["evidence"] = [[span.start, span.end] for span in example.evidence]
        return {n: [*value] if isinstance(value, tuple) else value for n, value in fields.items()}


def _merge(group: _Group, key: str, further: Example) -> None:
    """Adds the references and fault of another row of an example."""
    line, stored = group.examples[further.id]
    differing = "question" if stored.question != further.question else ""
    if differing := "document" if group.key != key else differing:
        raise RowError([f"id {further.id!r} has another {differing} on line {line}"])
    references, fault = stored.references + further.references, stored.fault or further.fault
    merged = dataclasses.replace(stored, references=references, fault=fault)
    group.examples[further.id] = line, merged


def _key(document: Document) -> str:
    """Returns a hash of a document's text and parts; rows with the same hash share it."""
    digest = hashlib.sha256(document.text.encode())
    for part in document.parts:
        digest.update(b"%d-%d " % (part.start, part.end))
    return digest.hexdigest()


def stored_examples(rows: Any, layout: Layout) -> Iterator[Example]:  # noqa: ANN401 -- JSON
    """Yields the examples on a document of `RowIndex`; none if the layout is of other data."""
    parts = tuple(Span(*ends) for ends in rows["parts"])
    text, name = layout.text(*rows["text"]), f"text-{rows['key'][:16]}"
    document = Document(name, text, rows["title"], parts=parts)
    for packed in rows["examples"] if _key(document) == rows["key"] else ():
        fields: dict[str, Any] = {
            n: tuple(v) if isinstance(v, list) else v for n, v in packed.items()
        }
        fields["evidence"] = tuple(Span(*ends) for ends in packed.get("evidence", ()))
        yield Example(document=document, **fields)
