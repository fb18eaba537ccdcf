"""Explains cache misses by the first field in which the key of the nearest entry differs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.analysis.finished import FinishedJob, FinishedRun
from leporello.cache.dependencies import fingerprint
from leporello.cache.store import Cache, CacheEntry
from leporello.core.calls.contracts import asks_question, indexers
from leporello.core.calls.derived import chunks_of, index_key, passages_of
from leporello.core.calls.stage_calls import divide
from leporello.core.errors import UserError
from leporello.core.files import cache_directory
from leporello.core.hashing import differences
from leporello.core.records import Example
from leporello.engine.enriching import passage_stages
from leporello.engine.failures import ExampleError, stage_errors
from leporello.engine.reading import digest_of
from leporello.engine.results.serialization import read_from_row


@dataclass(frozen=True, slots=True)
class Reuse:
    """State of the cache for one result that an example needs."""

    pipeline: str
    task: str
    kind: str  # `chunks`, `passages`, `index` or `outputs`
    stage: str  # name of the class that computes the result
    kept: bool  # whether the result is cached
    # First field in which the nearest entry differs, `name: other -> now`, or the reason why the
    # stage is not cached; empty for a hit or an empty cache.
    differs: str
    entry: Path | None  # file with the result or the nearest entry; None for an empty cache


def why(run: Path, example_id: str) -> list[Reuse]:
    """Compares the cache keys that an example of a run needs now with the entries of the cache."""
    examples, entries = FinishedRun.at(run).with_example(example_id), _entries()
    return [
        _reuse((job.pipeline, job.task, kind, cls.__name__), key, entries.get(kind, ()))
        for job, example in examples
        for kind, cls, key in _needed_keys(job, example)
    ]


def _needed_keys(
    job: FinishedJob, example: Example
) -> Iterator[tuple[str, type, Mapping[str, Any] | None]]:
    stages = job.point.build()
    chunker, document = stages.chunker, example.document
    question = example.question if asks_question(chunker) else None
    yield "chunks", type(chunker), chunks_of(document, chunker, question).key(fingerprint)
    try:
        with stage_errors("chunker"):
            chunks = divide(chunker, document, question or "")
    except ExampleError as error:
        raise UserError(f"the chunker fails on this example: {error.message}") from None
    if stages.enricher is not None and chunks:
        enrichers = passage_stages(stages)
        passages = passages_of(chunks, enrichers)
        yield "passages", type(enrichers[0]), passages.key(fingerprint)
        chunks = passages.cached() or chunks
    for indexer in indexers(stages.retriever):
        yield "index", type(indexer), index_key(document, indexer, chunks, fingerprint)
    row = job.files.row(example.id)
    calls = row.calls if row else ()
    reads = ((call["role"], digest_of(read_from_row(call, document))) for call in calls)
    for role, digest in dict.fromkeys(reads):
        reader = stages.reader_of(role)
        identity = fingerprint(reader)
        key = None if identity is None else {"reader": {**identity}, "read": digest}
        yield "outputs", type(reader), key


def _entries() -> Mapping[str, Sequence[tuple[CacheEntry, Mapping[str, Any]]]]:
    entries: defaultdict[str, list[tuple[CacheEntry, Mapping[str, Any]]]] = defaultdict(list)
    for entry in Cache(cache_directory()).entries():
        if key := entry.recipe():
            entries[entry.kind].append((entry, key))
    return entries


def _reuse(
    names: tuple[str, str, str, str],
    key: Mapping[str, Any] | None,
    recipes: Sequence[tuple[CacheEntry, Mapping[str, Any]]],
) -> Reuse:
    if key is None:
        cause = "it is not a frozen dataclass of plain fields, or declares repeatable = False"
        return Reuse(*names, False, f"{names[-1]} is not cached: {cause}", None)
    entries = [(entry, _comparable(recipe, key)) for entry, recipe in recipes]
    if same := next((entry for entry, old in entries if old == key), None):
        return Reuse(*names, True, "", same.path)
    if not entries:
        return Reuse(*names, False, "", None)

    def rank(pair: tuple[CacheEntry, Mapping[str, Any]]) -> tuple[bool, int, float]:
        entry, old = pair
        fields = sum(1 for _ in differences(old, key))
        return not _same_subject(old, key), fields, -entry.last_use

    nearest, old = min(entries, key=rank)
    return Reuse(*names, False, next(differences(old, key), ""), nearest.path)


def _comparable(old: Mapping[str, Any], key: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns an entry's recipe; for a batch of outputs, as a recipe of the one read in `key`."""
    if "read" not in key or "reads" not in old:
        return old
    reads: Sequence[str] = old["reads"]
    read = key["read"] if key["read"] in reads else "not in its batch"
    return {"reader": old["reader"], "read": read}


def _same_subject(old: Mapping[str, Any], needed: Mapping[str, Any]) -> bool:
    """Returns whether two recipes have the same classes and text, or the same read."""
    kinds = ("chunker", "enricher", "retriever", "reader")
    fields = [(kind, "class") for kind in kinds]
    return old.get("read") == needed.get("read") and all(
        old.get(kind, {}).get(field) == needed.get(kind, {}).get(field)
        for kind, field in (*fields, ("document", "text"))
    )
