"""Retrieval in TREC's formats: what was found, and what should have been.

A chunk's name is `DOCUMENT:START-END`. As chunks are each pipeline's own, so are the judgements.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

from leporello.cache.store import Cache
from leporello.config import Pipeline, load_config
from leporello.core.files import atomically, read_rows
from leporello.core.notes import collect_notes
from leporello.core.records import Example, Span
from leporello.engine.selection import divided
from leporello.engine.task_examples import by_document, examples_of
from leporello.jobs.checksums import check_results
from leporello.jobs.directory import RunDirectory
from leporello.models.locate import cache_directory


def write_trec(run: Path, folder: Path) -> list[Path]:
    """Writes for each pipeline on each task PIPELINE/TASK.run and PIPELINE/TASK.qrels.

    Of the run, `QUERY Q0 CHUNK RANK SCORE PIPELINE`: the hits of every example, their ranks from
    1 on. Scores that do not fall with the rank are replaced by what does, since programs sort by
    them. Of the judgements, `QUERY 0 CHUNK 1`: the chunks that overlap the gold evidence; examples
    without evidence have none.

    Args:
        run: Directory of the run.
        folder: Folder of the files.

    Raises:
        UserError: No run lies there, or its tasks' data cannot be read.
    """
    directory = RunDirectory.of_run(run)
    config = load_config([directory.config])
    written: list[Path] = []
    for pipeline, task in directory.jobs():
        base = folder / directory.results(pipeline, task).relative_to(directory.path)
        base.parent.mkdir(parents=True, exist_ok=True)
        stages = config.select([pipeline])[0].build()
        source = config.tasks[task].spec.build()
        paths = base.with_name(f"{base.name}.run"), base.with_name(f"{base.name}.qrels")
        hits = _hits(directory, pipeline, task)
        with atomically(paths[0]) as ranked, atomically(paths[1]) as judged:
            for example in _with_documents(examples_of(source, task)):
                if example.id in hits:
                    ranked.writelines(_ranked(example, hits[example.id], pipeline))
                    judged.writelines(_judged(example, stages))
        written += paths
    return written


def _hits(directory: RunDirectory, pipeline: str, task: str) -> dict[str, Any]:
    """Returns the hits of each finished example, by its id."""
    path = directory.results(pipeline, task) / "predictions.jsonl"
    check_results(path.parent, path.name)
    return {row["id"]: row["hits"] for row in (read_rows(path) if path.exists() else ())}


def _with_documents(examples: Iterator[Example]) -> Iterator[Example]:
    """Yields the examples; what is derived of their documents comes from the cache."""
    cache = Cache(cache_directory())
    for _, group in by_document(examples):
        group[0].document.use_cache(cache)
        yield from group


def _ranked(example: Example, hits: list[tuple[int, int, float]], pipeline: str) -> Iterator[str]:
    scores = [score for _, _, score in hits]
    falling = all(one > other for one, other in pairwise(scores))
    for rank, (start, end, score) in enumerate(hits, 1):
        shown = score if falling else len(hits) - rank + 1
        name = _name(example, Span(start, end))
        yield f"{_word(example.id)} Q0 {name} {rank} {shown:.8g} {_word(pipeline)}\n"


def _judged(example: Example, stages: Pipeline) -> Iterator[str]:
    if not example.evidence:
        return
    with collect_notes():  # the run has the notes, too
        chunks = divided(stages.chunker, example)
    for chunk in chunks:
        if any(chunk.start < gold.end and gold.start < chunk.end for gold in example.evidence):
            yield f"{_word(example.id)} 0 {_name(example, chunk.span)} 1\n"


def _name(example: Example, span: Span) -> str:
    return f"{_word(example.document.id)}:{span.start}-{span.end}"


def _word(text: str) -> str:
    """Returns a name without white space, as fields of these files must be."""
    return quote(text, safe="/:@+,=", errors="surrogatepass") or "%"
