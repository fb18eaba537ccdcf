"""One pass over the rows of files: what is wrong with it, and where each document's rows stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from leporello.core.errors import Fault
from leporello.core.records import JSON, DocumentRows
from leporello.tasks.jsonl.lines import raise_faults
from leporello.tasks.jsonl.offsets import Offset, OffsetTable
from leporello.tasks.jsonl.row_files import RowFiles
from leporello.tasks.jsonl.schema import RowError

_TOGETHER = 1000  # rows that are noted at once
MOST_FAULTS = 500  # after which no more are looked for


def scan(files: RowFiles) -> Iterator[DocumentRows]:
    """Reads every row, then yields the documents, as they first appear.

    Raises:
        ConfigError: All that is wrong with rows, or between them; behind the last document.
        UserError: As `RowFiles.rows`; or there is no room to note where rows stand.
    """
    places, faults = OffsetTable(files.files[0]), list[Fault]()
    knows_all = _note(places, files, faults) and not faults
    for line, row_id, first in places.repeats():
        faults.append(files.fault(line, f"id {row_id!r} stands on {files.told(first)} already"))
    for rows in places.documents():
        source = next((row for row in rows if row.content), None)
        if source or knows_all:  # else the text may stand in a row that could not be read
            faults += [files.fault(*fault) for fault in contradictions(rows, source, files)]
        more: dict[str, JSON] = {"path": source.path} if source and source.path else {}
        yield DocumentRows(len(rows), sum(row.size for row in rows), {"at": _runs(rows), **more})
    raise_faults(faults)


def _note(places: OffsetTable, files: RowFiles, faults: list[Fault]) -> bool:
    """Notes all rows, and what is wrong with each by itself; says whether none was too large."""
    new: list[Offset] = []
    all_read = True
    for line in files.rows():
        try:
            row = files.row(line)
        except RowError as error:
            faults += [files.fault(line.number, text) for text in error.faults]
            if len(faults) > MOST_FAULTS:
                break
            continue
        all_read = all_read and line.content is not None
        new.append(Offset.of(row, line.number, line.offset, line.size))
        if len(new) == _TOGETHER:
            places.add(new)
            new.clear()
    places.add(new)
    places.sort()
    return all_read


def _runs(rows: Sequence[Offset]) -> list[JSON]:
    """Returns where rows stand as [line, offset, count]: those that follow each other are one."""
    runs: list[Any] = []
    for row in rows:
        if runs and row.line == runs[-1][0] + runs[-1][2]:
            runs[-1][2] += 1
        else:
            runs.append([row.line, row.offset, 1])
    return runs


def contradictions(
    rows: Sequence[Offset], source: Offset | None, files: RowFiles
) -> Iterator[tuple[int, str]]:
    """Yields what is wrong between the rows on a document, behind its line.

    Args:
        rows: Rows in the file's order.
        source: The first row that gives the text or the path; None if none does.
        files: Files of the rows.
    """
    name = f"document {rows[0].document!r}"
    if source is None:
        text = "has no text: none of its rows gives `document` or `document_path`"
        yield rows[0].line, f"{name} {text}"
    title = next((row.title for row in rows if row.title), "")
    for row in rows:
        if source and row.content not in ("", source.content):
            yield row.line, f"{name} is given a second text; {files.told(source.line)} has another"
        if row.title not in ("", title):
            text = f"is given a second title, {row.title!r}; a line above has {title!r}"
            yield row.line, f"{name} {text}"
