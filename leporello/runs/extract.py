"""Extracts typed answers into a table: one row per document, one column per field."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from leporello.core.calls.answers import Certainty, certainty
from leporello.core.coverage import Span
from leporello.core.errors import ConfigError, UserError
from leporello.core.files import atomically, check_own
from leporello.core.records import JSON, Document
from leporello.core.table import csv_text
from leporello.core.yaml.tree import Tree, read_tree
from leporello.loaders.collection import unreadable
from leporello.runs.answer import Answer
from leporello.runs.ask import Session
from leporello.text.outline import cited
from leporello.text.typed.fields import AnswerField, UnitError, fields_of, in_unit
from leporello.text.typed.parse import as_answer, fault_of
from leporello.text.typed.schema import AnswerTypeError, json_schema

NOT_THERE = "not in the document"
_COLUMNS = ("unit", "start", "end", "place", "confidence", "reason")  # after that of the value


@dataclass(frozen=True, slots=True)
class ExtractedCell:
    """Value of one field in one document."""

    value: JSON = None  # value of the field's type; None if the document has none
    unit: str = ""  # unit of a number: the field's, otherwise the document's; empty without one
    span: Span | None = None  # characters of the document that contain the value; None if unknown
    place: str = ""  # place of the span, such as `report.pdf p. 3`
    confidence: float | None = None  # probability that the value is correct
    reason: str = ""  # reason for a missing value
    failed: bool = False  # whether a failure is the reason

    @property
    def certainty(self) -> Certainty | None:
        """Confidence in the value as a word; None without a value or a confidence."""
        if self.value is None or self.confidence is None:
            return None
        return certainty(self.confidence)


@dataclass(frozen=True, slots=True)
class ExtractedRow:
    """A document and its cells, one per field."""

    document: str
    cells: tuple[ExtractedCell, ...]


def schema_from(path: Path) -> str:
    """Returns the JSON Schema for a JSON or YAML file with a schema, a type or `fields`.

    Raises:
        UserError: The file cannot be read.
        ConfigError: It is not JSON or YAML, a type or valid JSON Schema; names the line.
    """
    tree = read_tree(path)
    if not tree.plain():
        raise UserError(f"{path}: declares no type; write one, such as `type: date`")
    try:
        return json.dumps(json_schema(tree.plain()), ensure_ascii=False)
    except AnswerTypeError as error:
        faults = [_subtree(tree, fault.path).fault(str(fault)) for fault in error.faults]
        raise ConfigError(faults) from None


def fields_from(path: Path) -> tuple[AnswerField, ...]:
    """Returns the fields of an object that a file describes; see `schema_from`."""
    fields = fields_of(schema_from(path))
    if not fields:
        raise UserError(
            f"{path}: a table needs `fields` with names and types, or the JSON Schema of an object"
        )
    for field in fields:
        if not field.question.strip():
            name = field.pointer[1:]
            raise UserError(
                f"{path}: field {name!r} has no description, and its name contains no words"
            )
    return fields


def check_table(path: Path) -> None:
    """Raises `UserError` if a table cannot be written, or would replace another file."""
    if path.suffix.lower() != ".csv":
        raise UserError(f"{path}: the name of a table must end with .csv")
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir():
        reason = "is a folder" if path.is_dir() else f"there is no folder {folder}"
        raise UserError(f"{path}: cannot be written: {reason}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"{path}: cannot be written: permission denied")
    check_own(path, ".reason")


def extract(session: Session, fields: Sequence[AnswerField]) -> Iterator[ExtractedRow]:
    """Yields one row per document, in order; unreadable documents are last, with the reason."""
    questions = [(field.question, field.schema) for field in fields]
    for session_of_file in session.by_file():
        document = session_of_file.document
        attempts = session_of_file.attempts(questions)
        cells = (_cell(document, *pair) for pair in zip(fields, attempts, strict=True))
        yield ExtractedRow(document.id, tuple(cells))
    for loss in unreadable(session.document):
        yield ExtractedRow(loss.place, (ExtractedCell(reason=loss.why, failed=True),) * len(fields))


def write_table(path: Path, fields: Sequence[AnswerField], rows: Sequence[ExtractedRow]) -> None:
    """Writes a table atomically, with each field's value, place and confidence."""
    names = ("", *(f".{name}" for name in _COLUMNS))
    lines = [["document", *(column(field) + name for field in fields for name in names)]]
    lines += [[row.document, *chain(*map(_values, row.cells))] for row in rows]
    try:
        with atomically(path) as file:
            file.write(csv_text(lines))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def column(field: AnswerField) -> str:
    """Returns the name of a field's column."""
    return field.pointer[1:].replace("/", ".")


def _cell(document: Document, field: AnswerField, attempt: Answer | UserError) -> ExtractedCell:
    if isinstance(attempt, UserError):
        return ExtractedCell(reason=str(attempt), failed=True)
    typed = attempt.typed
    if typed is None or typed.value is None:
        return ExtractedCell(reason=NOT_THERE)
    span = next(iter(typed.spans.values()), None)
    place = cited(document, span) if span else ""
    cell = ExtractedCell(typed.value, "", span, place, attempt.confidence)
    try:
        return _with_unit(cell, field, document, copied=bool(attempt.spans))
    except UnitError as error:
        return replace(cell, value=None, reason=str(error), failed=True)


def _with_unit(
    cell: ExtractedCell, field: AnswerField, document: Document, *, copied: bool
) -> ExtractedCell:
    """Returns a cell with its number in the unit of its field; raises UnitError."""
    value, span = cell.value, cell.span
    if isinstance(value, bool) or not isinstance(value, (int, float)) or span is None:
        return cell
    converted, unit = in_unit(value, document.text, span, column(field), field.question)
    quoted = " ".join(document.text[span.start : span.end].split())
    if converted != value and not copied:  # the text at hand may be another number of the document
        raise UnitError(f"the answer is {value} {unit}, but {quoted!r} in the document")
    if fault := fault_of(converted, field.schema):
        raise UnitError(f"{quoted!r} in the document is {converted:g} {unit}: {fault}")
    return replace(cell, value=converted, unit=unit)


def _values(cell: ExtractedCell) -> list[str]:
    """Returns the value of a cell, and then its `_COLUMNS`."""
    ends = (cell.span.start, cell.span.end) if cell.span else (None, None)
    values = (cell.value, cell.unit, *ends, cell.place, cell.confidence, cell.reason)
    return [*map(as_answer, values)]


def _subtree(tree: Tree, path: Sequence[str]) -> Tree:
    """Follows the keys of a type, or of its JSON Schema, to a node in the file."""
    for part in path:
        synonym = {"properties": "fields", "enum": "choices"}.get(part, part)
        items = tree.items
        if isinstance(tree.value, list) and part.isdecimal() and int(part) < len(tree.value):
            tree = tree.value[int(part)]
        elif key := next((name for name in (part, synonym) if name in items), ""):
            tree = items[key]
    return tree
