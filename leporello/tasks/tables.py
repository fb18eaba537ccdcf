"""Rows that are not lines: tables of columns, and archives of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leporello.tasks.json_lines import JsonLines


@dataclass(frozen=True)
class Table(JsonLines):
    """Questions from Parquet, Arrow and Feather files, and from folders that `datasets` saved.

    A row of the table is a row of `JsonLines`, whose parameters it has; `columns` tells which
    column is which field.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".arrow", ".feather", *JsonLines.suffixes)


@dataclass(frozen=True)
class WebDataset(JsonLines):
    """Questions on documents in WebDataset's tars: `KEY.json` beside `KEY.pdf`, `KEY.md`, ….

    `KEY.json` has the fields of a row of `JsonLines`, or a list of rows; the document is the other
    member of that key, whatever format it is in. The members of a key follow each other.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".tar", ".tgz")
