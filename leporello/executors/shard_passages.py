"""What enrichers make of a shard's documents, with a journal of its own beside the pipeline's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leporello.core.notes import collect_notes, note
from leporello.core.passages import from_table, to_table
from leporello.core.records import Chunk, Document, Example
from leporello.engine.enriching import Enriching
from leporello.engine.failures import ExampleError
from leporello.engine.journal.journal import Journal, finished_in
from leporello.engine.journal.rows import FinishedRow, ShardRow, encode
from leporello.engine.selection import divided


class ShardPassages:
    """The passages of one pipeline on one shard.

    Attributes:
        journal: Journal: a row a finished document, its passages in it.
    """

    def __init__(self, path: Path, of: ShardRow, enriching: Enriching) -> None:
        """Reads what an earlier process left.

        Raises:
            UserError: The journal is damaged.
        """
        self.journal, self._enriching = Journal(path), enriching
        self.journal.begin(of)
        rows = (finished.row for finished in finished_in(path))
        self._kept = {row.done: row.prediction or {} for row in rows}

    def prepare(self, number: int, example: Example) -> None:
        """Has a document remember its passages, and the journal keep them.

        Args:
            number: Number of the document in the shard.
            example: An example on it.

        Raises:
            ExampleError: The chunker or the enricher failed; the next pass tries again.
            UserError: A mistake of the user's.
        """
        chunks = divided(self._enriching.stages.chunker, example)
        kept = self._kept.get(number)
        with collect_notes() as notes:
            if kept:
                self._enriching.of(chunks, make=lambda: _from(kept, example.document))
                return
            try:
                passages = self._enriching.of(chunks, number, self.journal)
            except ExampleError:
                self.journal.retry([number])  # what was said so far led there
                raise
        row = {"document": example.document.sha256, **to_table(passages), "notes": notes}
        self.journal.finish(number, encode(FinishedRow(number, {}, prediction=row)))


def _from(row: Mapping[str, Any], document: Document) -> tuple[Chunk, ...]:
    for text in row["notes"]:
        note(text)
    return from_table(document, row)


def passages_in(journals: Path, document: Document) -> tuple[Chunk, ...]:
    """Returns the passages that a run made of a document; none where it made none.

    Args:
        journals: Folder of the journals of the pipeline on the task.
        document: The document.

    Raises:
        UserError: A journal is damaged.
    """
    for path in sorted(journals.glob("*.passages.jsonl")):
        for finished in finished_in(path):
            row = finished.row.prediction or {}
            if row.get("document") == document.sha256:
                return from_table(document, row)
    return ()
