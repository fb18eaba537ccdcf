"""One pass over files whose rows on one document stand together: where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from leporello.core.errors import Fault
from leporello.core.records import JSON, DocumentRows
from leporello.tasks.jsonl.lines import Line, raise_faults
from leporello.tasks.jsonl.row_files import LINES, RowFiles
from leporello.tasks.jsonl.scan import MOST_FAULTS
from leporello.tasks.jsonl.schema import SOURCES, Row, RowError, spelled


class _ByName(BaseModel):
    """What names a row's document. No other field is made into a Python object, nor checked."""

    model_config = ConfigDict(strict=True)

    document_path: Annotated[str, Field(min_length=1)] | None = None
    document_id: Annotated[str, Field(min_length=1)] | None = None
    documents: list[str] | None = None
    collection: str | None = None


class _ByContent(_ByName):
    """The same, and the text."""

    document: str | None = None


def scan_adjacent(files: RowFiles) -> Iterator[DocumentRows]:
    """Yields where the rows on each document stand, in the memory of a row.

    Rows belong together whose `document_id` is the same; else path; else text.

    Raises:
        ConfigError: Rows that are no JSON, or name no document; when all have been read.
        UserError: As `RowFiles.rows`.
    """
    faults: list[Fault] = []
    for _, together in groupby(_keyed(files, faults), lambda keyed: keyed[0]):
        runs: dict[int, list[int]] = {}  # a file's rows on a document are one
        size = 0
        more: dict[str, JSON] = {}
        for _, document_path, line in together:
            file = line.number >> LINES
            if file not in runs:
                runs[file] = [line.number, line.offset, 0]
            runs[file][2] += 1
            size += line.size
            if document_path:
                more = more or {"path": document_path}
        at: list[JSON] = [[*run] for run in runs.values()]
        yield DocumentRows(sum(run[2] for run in runs.values()), size, {"at": at, **more})
    raise_faults(faults)


def _keyed(files: RowFiles, faults: list[Fault]) -> Iterator[tuple[tuple[str, str], str, Line]]:
    """Yields each row behind what its neighbours on the document share, and the path it gives."""
    form = files.form
    is_plain = not form.columns and not {*SOURCES, "document_id"} & set(form.ignore)
    for line in files.rows():
        named = _named(line.content) if is_plain and isinstance(line.content, bytes) else None
        try:
            row = named or files.row(line)
        except RowError as error:
            faults += [files.fault(line.number, text) for text in error.faults]
            if len(faults) > MOST_FAULTS:
                return
            continue
        document_path = row.source if isinstance(row, Row) else row.document_path or ""
        name = row.document_id or (spelled(document_path) if document_path else "")
        key = ("name", name) if name else ("text", getattr(row, "document", None) or "")
        yield key, document_path, line


def _named(content: bytes) -> _ByName | None:
    """Returns what names a row's document; None where the whole row has to tell."""
    with suppress(ValidationError):
        row = _ByName.model_validate_json(content)
        if row.documents or row.collection:
            return None
        if row.document_id or row.document_path:
            return row
        row = _ByContent.model_validate_json(content)
        if row.document is not None:
            return row
    return None
