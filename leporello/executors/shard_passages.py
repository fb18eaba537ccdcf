"""Passages that enrichers make of a shard's documents, kept in the store of the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leporello.core.notes import collect_notes, note
from leporello.core.passages import from_table, to_table
from leporello.core.records import Chunk, Document, Example
from leporello.engine.database import passages_in
from leporello.engine.enriching import Enriching
from leporello.engine.failures import ExampleError
from leporello.engine.selection import divided
from leporello.engine.store import MemoryStore


def prepare_passages(
    store: MemoryStore, enriching: Enriching, number: int, example: Example
) -> None:
    """Makes the passages of a document, which the document remembers and the store keeps.

    Args:
        store: Store of the pipeline on the shard.
        enriching: Enricher with its readers.
        number: Number of the document in the shard.
        example: An example on the document.

    Raises:
        ExampleError: The chunker or the enricher failed; a retry tries again.
        UserError: A mistake of the user's.
    """
    chunks, document = divided(enriching.stages.chunker, example), example.document
    with collect_notes() as notes:
        if kept := store.passages(number, document.sha256):
            enriching.of(chunks, make=lambda: _restored(kept, document))
            return
        try:
            passages = enriching.of(chunks, number, store)
        except ExampleError:
            store.forget(number)  # the outputs so far led there
            raise
    store.add_passages(number, document.sha256, {**to_table(passages), "notes": [*notes]})


def _restored(row: Mapping[str, Any], document: Document) -> tuple[Chunk, ...]:
    for text in row["notes"]:
        note(text)
    return from_table(document, row)


def passages_of(stores: Path, document: Document) -> tuple[Chunk, ...]:
    """Returns the passages that a run made of a document; none where it made none.

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
