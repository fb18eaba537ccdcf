"""Rows of the Shuffle Test: of a file of one's own, or of those that its paper's texts lie in."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.official.archives import Archive
from leporello.tasks.official.fields import text_of

SPLITS = ("train", "test")

# A row, or what is wrong with it, behind the number of its line from 1.
NumberedRow: TypeAlias = tuple[int, Mapping[str, Any] | RowError]
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class ShuffleCorpus:
    """Where such texts lie, and which of them are tested.

    Attributes:
        file: Path below the data directory; `{split}` in it stands for the split.
        text: Field of the text.
        id: Field of its name; empty if it has none.
        needs: Field that must not be blank either, or the row is passed over.
        tested: Number of rows that the split `test` has, the last ones if below 0; 0 has all. Where
            there is one file, `train` has the others.
    """

    file: str
    text: str = "text"
    id: str = ""
    needs: str = ""
    tested: int = 0

    def row(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns a row as the task has its own; None for one without text.

        Raises:
            RowError: A field is missing, or no text.
        """
        text = text_of(row, self.text)
        if not text.strip() or (self.needs and not text_of(row, self.needs).strip()):
            return None
        return {"text": text, **({"id": text_of(row, self.id)} if self.id else {})}

    def of_split(self, rows: Iterator[_Row], split: str) -> Iterator[_Row]:
        """Returns the rows of a split, in their order."""
        if split == "test" and self.tested:
            return (
                islice(rows, self.tested)
                if self.tested > 0
                else iter(deque(rows, maxlen=-self.tested))
            )
        return rows if "{split}" in self.file else _without_last(rows, -self.tested)


def _without_last(rows: Iterator[_Row], count: int) -> Iterator[_Row]:
    held: deque[_Row] = deque()
    for row in rows:
        held.append(row)
        if len(held) > count:
            yield held.popleft()


# HF's `reddit_tifu` (short) has the posts with text and title; the authors take its last thousand.
CORPORA: Mapping[str, ShuffleCorpus] = {
    "wsj": ShuffleCorpus("shuffle_test/coherence_{split}_set.json"),
    "billsum": ShuffleCorpus(
        "billsum/us_{split}_data_final_OFFICIAL.jsonl", id="bill_id", tested=1000
    ),
    "reddit_tifu": ShuffleCorpus(
        "reddit_tifu/tifu_all_tokenized_and_filtered.json",
        text="selftext_without_tldr",
        id="id",
        needs="trimmed_title",
        tested=-1000,
    ),
}


def rows_of(path: Path, corpus: str, split: str) -> Iterator[NumberedRow]:
    """Yields the rows of a split as the task has its own; blank lines are passed over.

    Raises:
        UserError: The file cannot be read.
    """
    if not corpus:
        return _decoded(path, dict)
    made = CORPORA[corpus]
    return made.of_split(_decoded(path, made.row), split)


def _decoded(
    path: Path, made: Callable[[Mapping[str, Any]], dict[str, Any] | None]
) -> Iterator[NumberedRow]:
    for at, line in Archive(path).rows():
        try:
            row = made(decode(line, strict=False))
        except RowError as error:
            yield at, error
        else:
            if row is not None:
                yield at, row
