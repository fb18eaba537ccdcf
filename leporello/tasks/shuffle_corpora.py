"""Reads rows of the Shuffle Test, from the user's file or the files of the paper's texts."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from leporello.tasks.jsonl.schema import RowError, decode
from leporello.tasks.official.archives import Archive
from leporello.tasks.official.benchmark import text_of

SPLITS = ("train", "test")

# Number of a line from 1, and its row or fault.
NumberedRow: TypeAlias = tuple[int, Mapping[str, Any] | RowError]
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class ShuffleCorpus:
    """File of texts of the paper, and the split."""

    file: str  # path below the data directory; `{split}` in it is replaced by the split
    text: str = "text"
    id: str = ""  # field of the text's id; empty if it has none
    needs: str = ""  # further field; the row is skipped if it is blank
    # Number of rows of the split `test`, from the end if negative; 0 means all. If there is only
    # one file, `train` has the other rows.
    tested: int = 0

    def row(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns a row with the task's fields, or None without text; raises RowError."""
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
                # Only these rows are in memory; the file has many more.
                else iter(deque(rows, maxlen=-self.tested))
            )
        return rows if "{split}" in self.file else _without_last(rows, -self.tested)


def _without_last(rows: Iterator[_Row], count: int) -> Iterator[_Row]:
    buffer: deque[_Row] = deque()
    for row in rows:
        buffer.append(row)
        if len(buffer) > count:
            yield buffer.popleft()


# As in HF's `reddit_tifu` (short), posts need text and title; the authors test the last thousand.
CORPORA: Mapping[str, ShuffleCorpus] = {
    # The splits are the authors' files and row numbers, so that scores compare (decision 21).
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
    """Yields the rows of a split with the fields of the task; blank lines are skipped."""
    if not corpus:
        return _decoded(path, dict)
    chosen = CORPORA[corpus]
    return chosen.of_split(_decoded(path, chosen.row), split)


def _decoded(
    path: Path, convert: Callable[[Mapping[str, Any]], dict[str, Any] | None]
) -> Iterator[NumberedRow]:
    for line in Archive(path).rows():
        try:
            row = convert(decode(line.content, strict=False))
        except RowError as error:
            yield line.number, error
        else:
            if row is not None:
                yield line.number, row
