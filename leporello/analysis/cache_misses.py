"""Why something was not taken from the cache: the first field in which its key differs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.analysis.finished import FinishedJob, FinishedRun
from leporello.cache.fingerprint import fingerprint
from leporello.cache.store import Cache, CacheEntry
from leporello.core.calls.contracts import asks_question, indexers
from leporello.core.calls.derived import cached_passages, chunks_key, index_key, passages_key
from leporello.core.calls.stage_calls import divide
from leporello.core.errors import UserError
from leporello.core.hashing import differences
from leporello.core.records import Example
from leporello.engine.enriching import passage_stages
from leporello.engine.failures import ExampleError, stage_errors
from leporello.engine.reading import digest_of
from leporello.engine.results.serialization import read_from_row
from leporello.jobs.files import ExampleFiles
from leporello.models.locate import cache_directory


@dataclass(frozen=True, slots=True)
class Reuse:
    """Whether one thing that an example needs would be taken from the cache now.

    Attributes:
        pipeline: Name of the pipeline.
        task: Name of the task.
        kind: `chunks`, `passages`, `index` or `outputs`.
        stage: Name of the class that makes it.
        kept: Whether the cache has it.
        differs: Name and values of the first field in which the nearest other entry differs,
            `name: other -> now`, or why nothing is cached; empty if it is kept, or there is none.
        entry: File that holds it, or the nearest other one; None if there is none.
    """

    pipeline: str
    task: str
    kind: str
    stage: str
    kept: bool
    differs: str
    entry: Path | None


def why(run: Path, example_id: str) -> list[Reuse]:
    """Compares what an example of a run needs now with what the cache has.

    Raises:
        UserError: No run lies there, or it has no such example.
    """
    found, entries = FinishedRun.at(run).with_example(example_id), _entries()
    return [
        _reuse((job.pipeline, job.task, kind, cls.__name__), key, entries.get(kind, ()))
        for job, example in found
        for kind, cls, key in _needs(job, example)
    ]


def _needs(
    job: FinishedJob, example: Example
) -> Iterator[tuple[str, type, Mapping[str, Any] | None]]:
    """Yields kind, class and cache key of everything that an example needs."""
    stages = job.point.build()
    chunker, document = stages.chunker, example.document
    question = example.question if asks_question(chunker) else None
    yield "chunks", type(chunker), chunks_key(document, chunker, question, fingerprint)
    try:
        with stage_errors("chunker"):
            chunks = divide(chunker, document, question or "")
    except ExampleError as error:
        raise UserError(f"the chunker fails on this example: {error.message}") from None
    if stages.enricher is not None and chunks:
        used = passage_stages(stages)
        yield "passages", type(used[0]), passages_key(chunks, used, fingerprint)
        document.use_cache(Cache(cache_directory()))
        chunks = cached_passages(chunks, used) or chunks
    for part in indexers(stages.retriever):
        yield "index", type(part), index_key(document, part, chunks, fingerprint)
    for role, digest in dict.fromkeys(_digests(job, example)):
        reader = stages.reader_of(role)
        known = fingerprint(reader)
        key = None if known is None else {"reader": {**known}, "read": digest}
        yield "outputs", type(reader), key


def _digests(job: FinishedJob, example: Example) -> Iterator[tuple[str, str]]:
    """Yields role and digest of each read that the run made of an example."""
    row = job.files.row(example.id)
    for call in ExampleFiles.from_store(row).calls if row else ():
        yield call["role"], digest_of(read_from_row(call, example.document))


def _entries() -> Mapping[str, Sequence[tuple[CacheEntry, Mapping[str, Any]]]]:
    """Returns all entries of the cache by kind, each with what it was made from."""
    entries: defaultdict[str, list[tuple[CacheEntry, Mapping[str, Any]]]] = defaultdict(list)
    for entry in Cache(cache_directory()).entries():
        if key := entry.recipe():
            entries[entry.kind].append((entry, key))
    return entries


def _reuse(
    found: tuple[str, str, str, str],
    key: Mapping[str, Any] | None,
    kept: Sequence[tuple[CacheEntry, Mapping[str, Any]]],
) -> Reuse:
    """Compares one key with those of its kind."""
    if key is None:
        cause = "it is not a frozen dataclass of plain fields, or declares repeatable = False"
        return Reuse(*found, False, f"{found[-1]} is not cached: {cause}", None)
    entries = [(entry, _part(made_from, key)) for entry, made_from in kept]
    if same := next((entry for entry, old in entries if old == key), None):
        return Reuse(*found, True, "", same.path)
    if not entries:
        return Reuse(*found, False, "", None)

    def rank(pair: tuple[CacheEntry, Mapping[str, Any]]) -> tuple[bool, int, float]:
        entry, old = pair
        fields = sum(1 for _ in differences(old, key))
        return not _same_subject(old, key), fields, -entry.last_use

    nearest, old = min(entries, key=rank)
    return Reuse(*found, False, next(differences(old, key), ""), nearest.path)


def _part(old: Mapping[str, Any], key: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns an entry's key; of a window of outputs, as far as it speaks of this read."""
    if "read" not in key or "reads" not in old:
        return old
    reads: Sequence[str] = old["reads"]
    read = key["read"] if key["read"] in reads else "none of its window"
    return {"reader": old["reader"], "read": read}


def _same_subject(old: Mapping[str, Any], needed: Mapping[str, Any]) -> bool:
    """Says whether both are of the same class and the same text, or the same read."""
    kinds = ("chunker", "enricher", "retriever", "reader")
    fields = [(kind, "class") for kind in kinds]
    return old.get("read") == needed.get("read") and all(
        old.get(part, {}).get(field) == needed.get(part, {}).get(field)
        for part, field in (*fields, ("document", "text"))
    )
