"""Documents times fields: a table of typed answers, each with where it stands."""

from __future__ import annotations

import csv
import datetime
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.core.coverage import Span
from leporello.core.environment.extras import require
from leporello.core.errors import ConfigError, UserError
from leporello.core.records import JSON, Document
from leporello.core.yaml.tree import Tree, read_tree
from leporello.loaders.collection import unreadable
from leporello.runs.answer import Answer
from leporello.runs.ask import Session
from leporello.text.outline import cited
from leporello.text.typed.fields import AnswerField, fields_of
from leporello.text.typed.parse import as_answer, kind_of
from leporello.text.typed.schema import AnswerTypeError, json_schema

if TYPE_CHECKING:
    import pyarrow as pa

NOT_THERE = "not in the document"
_SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class ExtractedCell:
    """What one document says to one field.

    Attributes:
        value: Value of the field's type; None where there is none.
        span: Characters of the document where it stands; None where that is not known.
        place: The same as a person looks it up.
        confidence: Probability that it is right; None where no reader gives one.
        reason: Reason why there is no value.
        failed: Whether that is a failure.
    """

    value: JSON = None
    span: Span | None = None
    place: str = ""
    confidence: float | None = None
    reason: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ExtractedRow:
    """A document and its cells, one a field."""

    document: str
    cells: tuple[ExtractedCell, ...]


def schema_from(path: Path) -> str:
    """Returns the JSON Schema that a file of JSON or YAML holds: one itself, a type, or `fields`.

    Raises:
        UserError: It cannot be read, or is no JSON.
        ConfigError: It is not YAML, not a type, or not valid JSON Schema; with the line.
    """
    if path.suffix.lower() == ".json":
        _check_json(path)
    tree = read_tree(path)
    try:
        return json.dumps(json_schema(tree.plain()), ensure_ascii=False)
    except AnswerTypeError as error:
        faults = [_at(tree, fault.path).fault(str(fault)) for fault in error.faults]
        raise ConfigError(faults) from None


def fields_from(path: Path) -> tuple[AnswerField, ...]:
    """Returns the fields of an object that a file describes.

    Raises:
        UserError: As `schema_from`; or it is no object, or a field has no words to ask for it.
    """
    fields = fields_of(schema_from(path))
    if not fields:
        raise UserError(
            f"{path}: a table needs `fields`, types by name, or JSON Schema of an object"
        )
    for field in fields:
        if not field.question.strip():
            name = field.pointer[1:]
            raise UserError(
                f"{path}: field {name!r} has neither a description nor words for a name"
            )
    return fields


def check_table(path: Path) -> None:
    """Raises `UserError` where a table cannot be written, before any work."""
    if path.suffix.lower() not in _SUFFIXES:
        raise UserError(f"{path}: a table is a file that ends with .csv or .parquet")
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir():
        why = "is a folder" if path.is_dir() else f"there is no folder {folder}"
        raise UserError(f"{path}: cannot be written: {why}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise UserError(f"{path}: cannot be written: permission denied")
    if path.suffix.lower() == ".parquet":
        require("Parquet", "pyarrow")


def extract(session: Session, fields: Sequence[AnswerField]) -> Iterator[ExtractedRow]:
    """Yields a row a document, in order; those that cannot be read last, with the reason.

    Raises:
        UserError: A mistake of the user's; what fails of a document is in its cells.
    """
    asked = [(field.question, field.schema) for field in fields]
    for own in session.by_file():
        cells = (_cell(own.document, attempt) for attempt in own.attempts(asked))
        yield ExtractedRow(own.document.id, tuple(cells))
    for loss in unreadable(session.document):
        yield ExtractedRow(loss.place, (ExtractedCell(reason=loss.why, failed=True),) * len(fields))


def write_table(path: Path, fields: Sequence[AnswerField], rows: Sequence[ExtractedRow]) -> None:
    """Writes a table, whole or not at all: of each field the value, its place and its confidence.

    Raises:
        UserError: It cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(_arrow(fields, rows), part)
        else:
            _write_csv(part, fields, rows)
        part.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None


def column(field: AnswerField) -> str:
    """Returns the name of a field's column."""
    return field.pointer[1:].replace("/", ".")


def _cell(document: Document, attempt: Answer | UserError) -> ExtractedCell:
    if isinstance(attempt, UserError):
        return ExtractedCell(reason=str(attempt), failed=True)
    typed = attempt.typed
    if typed is None or typed.value is None:
        return ExtractedCell(reason=NOT_THERE)
    span = next(iter(typed.spans.values()), None)
    place = cited(document, span) if span else ""
    return ExtractedCell(typed.value, span, place, typed.confidence)


def _values(field: AnswerField, cell: ExtractedCell) -> Mapping[str, Any]:
    name, span = column(field), cell.span
    return {
        name: cell.value,
        f"{name}.start": span.start if span else None,
        f"{name}.end": span.end if span else None,
        f"{name}.place": cell.place,
        f"{name}.confidence": cell.confidence,
        f"{name}.reason": cell.reason,
    }


def _write_csv(path: Path, fields: Sequence[AnswerField], rows: Sequence[ExtractedRow]) -> None:
    names = ["document", *(name for field in fields for name in _values(field, ExtractedCell()))]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for row in rows:
            cells = zip(fields, row.cells, strict=True)
            values = (value for pair in cells for value in _values(*pair).values())
            writer.writerow([row.document, *map(as_answer, values)])


def _arrow(fields: Sequence[AnswerField], rows: Sequence[ExtractedRow]) -> pa.Table:
    import pyarrow as pa

    columns = {"document": pa.array([row.document for row in rows], pa.string())}
    for number, field in enumerate(fields):
        kind = kind_of(json.loads(field.schema))
        types = (_arrow_type(kind), pa.int64(), pa.int64(), pa.string(), pa.float64(), pa.string())
        table = [_values(field, row.cells[number]) for row in rows]
        for name, form in zip(_values(field, ExtractedCell()), types, strict=True):
            own = [values[name] for values in table]
            if name == column(field):
                own = [_arrow_value(kind, value) for value in own]
            columns[name] = pa.array(own, form)
    return pa.table(columns)


def _arrow_type(kind: str) -> pa.DataType:
    import pyarrow as pa

    known = {
        "number": pa.float64(), "integer": pa.int64(), "yes_no": pa.bool_(), "date": pa.date32(),
    }  # fmt: skip
    return known.get(kind, pa.string())


def _arrow_value(kind: str, value: JSON) -> Any:  # noqa: ANN401 -- of many types
    if value is None or kind in ("number", "integer", "yes_no"):
        return value
    return datetime.date.fromisoformat(str(value)) if kind == "date" else as_answer(value)


def _check_json(path: Path) -> None:
    try:
        json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except (OSError, ValueError, RecursionError):
        return  # told by what reads it


def _at(tree: Tree, path: Sequence[str]) -> Tree:
    """Returns the place in a file that keys of a type, or of the schema made of it, lead to."""
    for part in path:
        own = {"properties": "fields", "enum": "choices"}.get(part, part)
        items = tree.items
        if isinstance(tree.value, list) and part.isdecimal() and int(part) < len(tree.value):
            tree = tree.value[int(part)]
        elif key := next((name for name in (part, own) if name in items), ""):
            tree = items[key]
    return tree
