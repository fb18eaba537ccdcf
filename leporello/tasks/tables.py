"""Tasks of rows in tables and in archives of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leporello.tasks.json_lines import JsonLines


@dataclass(frozen=True)
class Table(JsonLines):
    """Questions from Parquet, Arrow and Feather files, and from folders that `datasets` saved.

    A row of the table is a row of `JsonLines`, and the parameters are the same; `columns` maps
    fields to columns.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".arrow", ".feather", *JsonLines.suffixes)


@dataclass(frozen=True)
class WebDataset(JsonLines):
    """Questions on documents in WebDataset's tars: `KEY.json` with `KEY.pdf`, `KEY.md`, ….

    `KEY.json` has the fields of a row of `JsonLines`, or a list of rows. The document is the other
    member with the key, in any format. Members with the same key must be adjacent.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".tar", ".tgz")
