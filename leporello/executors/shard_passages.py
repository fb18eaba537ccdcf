"""Passages that an enricher returns for a shard's documents, in the store of the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leporello.core.notes import collect_notes, note
from leporello.core.passages import from_table, to_table
from leporello.core.records import Chunk, Document, Example
from leporello.engine.database import passages_in
from leporello.engine.enriching import EnricherRunner
from leporello.engine.failures import ExampleError, stage_errors, time_limit
from leporello.engine.selection import document_chunks
from leporello.engine.store import MemoryStore


def prepare_passages(
    store: MemoryStore, enricher: EnricherRunner, number: int, example: Example
) -> None:
    """Computes or restores the passages of a document; the document and the store keep them.

    Args:
        store: Store of the pipeline on the shard.
        enricher: Runner of the enricher.
        number: Number of the document in the shard.
        example: An example on the document.

    Raises:
        ExampleError: The chunker or the enricher failed; a retry runs it again.
        UserError: The user made a mistake.
    """
    enricher.begin(number)
    document = example.document
    with stage_errors("chunker"), time_limit(enricher.limits.example_timeout):
        chunks = document_chunks(enricher.stages.chunker, example)
    with collect_notes() as notes:
        # From the store, even without a cache: another run of the enricher could give other
        # passages.
        if row := store.passages(number, document.sha256):
            enricher.passages_of(chunks, make=lambda: _restored(row, document))
            return
        try:
            passages = enricher.passages_of(chunks, number, store)
        except ExampleError:
            store.forget(number)  # replaying the outputs so far would fail again
            raise
    # Stored with the run: enriching may cost a read for each chunk, more than all questions
    # together.
    store.add_passages(number, document.sha256, {**to_table(passages), "notes": [*notes]})


def _restored(row: Mapping[str, Any], document: Document) -> tuple[Chunk, ...]:
    for text in row["notes"]:
        note(text)
    return from_table(document, row)


def passages_of(stores: Path, document: Document) -> tuple[Chunk, ...]:
    """Returns the passages that a run stored for a document; empty without an enricher.

    Args:
        stores: Folder of the stores of the pipeline on the task.
        document: The document.

    Raises:
        UserError: A store is damaged.
    """
    for path in sorted(stores.glob("*.sqlite")):
        if row := passages_in(path, document.sha256):
            return from_table(document, row)
    return ()
