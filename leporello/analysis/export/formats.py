"""Exports predictions as Parquet tables, retrieval results in TREC's formats, and PAN's solutions.

A chunk is named `DOCUMENT:START-END`. Relevance judgements depend on the pipeline's chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from leporello.analysis.finished import FinishedJob, FinishedRun
from leporello.analysis.funnel import chunk_spans
from leporello.config import Pipeline
from leporello.core.coverage import Coverage
from leporello.core.environment.extras import require
from leporello.core.errors import UserError, few
from leporello.core.files import atomically, check_own, in_utf8, write_json
from leporello.core.records import JSON, Example, Span
from leporello.jobs.manifest import metrics_of_run
from leporello.metrics import Metric
from leporello.metrics.pan21 import StyleChangeF1, labels_of

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 10_000  # rows in memory at a time


def write_parquet(run: Path, folder: Path) -> list[Path]:
    """Writes `TASK.parquet` with one row per example and pipeline; `/` in a name makes subfolders.

    Columns: `pipeline`, `task`, `id`, `prediction` (null for failures), `failed` (the stage, or
    null), `document_sha256`; the coverage in characters (`document`, `selected`, `read`, `cut`);
    `input_tokens`, `output_tokens`, `dollars`; and `score_METRIC`, the example's score. Raises
    UserError without a run or the extra `parquet`.
    """
    require("Parquet", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = []
    for task, jobs in FinishedRun.at(run).by_task.items():
        metrics = _metrics(jobs)
        schema = _schema(metrics)
        path = folder / f"{task}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        check_own(path, "document_sha256")
        with pq.ParquetWriter(path, schema) as writer:
            rows = (row for job in jobs for row in _rows(job, metrics))
            while batch := [*islice(rows, _ROWS)]:
                writer.write_table(pa.Table.from_pylist(batch, schema))
        paths.append(path)
    return paths


def _metrics(jobs: Sequence[FinishedJob]) -> dict[str, Metric]:
    names: dict[str, None] = {}
    for job in jobs:
        examples = job.files.statistics()
        names |= dict.fromkeys(next((e.statistics for e in examples if e.statistics), {}))
    return metrics_of_run(jobs[0].signature, names)


def _schema(metrics: Mapping[str, Metric]) -> pa.Schema:
    import pyarrow as pa

    texts = ("pipeline", "task", "id", "prediction", "failed", "document_sha256")
    counts = (*Coverage.__slots__, "input_tokens", "output_tokens")
    scores = ("dollars", *(f"score_{name}" for name in metrics))
    kinds = ((texts, pa.string()), (counts, pa.int64()), (scores, pa.float64()))
    return pa.schema([(name, kind) for names, kind in kinds for name in names])


def _rows(job: FinishedJob, metrics: Mapping[str, Metric]) -> Iterator[dict[str, Any]]:
    for example in job.files.examples():
        statistics, prediction = example.statistics, example.prediction
        row: dict[str, Any] = {"pipeline": job.pipeline, "task": job.task, "id": example.id}
        if statistics.failure:
            row["failed"] = statistics.failure[0]
        elif prediction:
            counts = {
                n: getattr(statistics, n) for n in ("input_tokens", "output_tokens", "dollars")
            }
            row |= {**statistics.coverage, **counts, "document_sha256": statistics.document}
            row["prediction"] = in_utf8(prediction["prediction"])
        for name, value in statistics.statistics.items():
            row[f"score_{name}"] = None if value is None else metrics[name].score(value)
        yield row


def write_trec(run: Path, folder: Path) -> list[Path]:
    """Writes PIPELINE/TASK.run and PIPELINE/TASK.qrels for each pipeline and task.

    A run file has lines `QUERY Q0 CHUNK RANK SCORE PIPELINE` for the hits of every example; ranks
    start at 1. Scores that do not decrease with the rank are replaced by decreasing numbers,
    because programs sort by them. A qrels file has lines `QUERY 0 CHUNK 1` for the chunks that
    overlap the gold evidence; examples without evidence have no lines.
    """
    finished = FinishedRun.at(run)
    all_paths: list[Path] = []
    for job in finished.jobs:
        base = folder / job.files.folder.relative_to(finished.directory.path)
        base.parent.mkdir(parents=True, exist_ok=True)
        stages = job.point.build()
        paths = base.with_name(f"{base.name}.run"), base.with_name(f"{base.name}.qrels")
        check_own(paths[0], " Q0 ")
        with atomically(paths[0]) as run_file, atomically(paths[1]) as qrels_file:
            for example, row in job.finished():
                if row.prediction:
                    run_file.writelines(_run_lines(example, row.prediction["hits"], job.pipeline))
                    qrels_file.writelines(_qrels_lines(example, stages))
        all_paths += paths
    return all_paths


def _run_lines(
    example: Example, hits: list[tuple[int, int, float]], pipeline: str
) -> Iterator[str]:
    scores = [score for _, _, score in hits]
    is_decreasing = all(score > following for score, following in pairwise(scores))
    for rank, (start, end, score) in enumerate(hits, 1):
        printed_score = score if is_decreasing else len(hits) - rank + 1
        name = _name(example, Span(start, end))
        yield f"{_word(example.id)} Q0 {name} {rank} {printed_score:.8g} {_word(pipeline)}\n"


def _qrels_lines(example: Example, stages: Pipeline) -> Iterator[str]:
    for chunk in chunk_spans(stages.chunker, example) if example.evidence else ():
        if any(gold.overlaps(chunk.start, chunk.end) for gold in example.evidence):
            yield f"{_word(example.id)} 0 {_name(example, chunk)} 1\n"


def _name(example: Example, span: Span) -> str:
    return f"{_word(example.document.id)}:{span.start}-{span.end}"


def _word(text: str) -> str:
    """Returns a name without white space, as the fields of TREC files require."""
    return quote(text, safe="/:@+,=", errors="surrogatepass") or "%"


_PROBLEM = re.compile(r"problem-(\d+)")
_LISTS = ("changes", "paragraph-authors")


def write_pan(run: Path, folder: Path) -> list[Path]:
    """Writes PIPELINE/TASK/solution-problem-N.json, as PAN 2021's evaluator and verifier read it.

    N is the number of PAN's problem; in tasks without problems (MuLD), the place of the example in
    the task, from 1. Raises UserError if no task is of style change; or if an example is not
    finished, failed, or has an answer without an author for each paragraph.
    """
    finished = FinishedRun.at(run)
    jobs = [
        job
        for job in finished.jobs
        if any(isinstance(metric, StyleChangeF1) for metric in job.metrics.values())
    ]
    if not jobs:
        raise UserError(f"{run}: has no results of a style change task, with the metric pan21")
    paths = []
    for job in jobs:
        place = folder / job.files.folder.relative_to(finished.directory.path)
        solutions = dict(_solutions(job))
        if unfit := [example_id for example_id, solution in solutions.values() if not solution]:
            raise UserError(
                f"{run}: {job.name}: {len(unfit)} of {len(solutions)} answers are missing, or do"
                f" not have an author for each paragraph ({few(unfit)})"
            )
        place.mkdir(parents=True, exist_ok=True)
        for number, (_, solution) in solutions.items():
            path = place / f"solution-problem-{number}.json"
            check_own(path, "paragraph-authors")
            write_json(path, solution)
            paths.append(path)
    return paths


def _solutions(job: FinishedJob) -> Iterator[tuple[int, tuple[str, dict[str, JSON]]]]:
    """Yields the number of each problem, its id, and its solution; empty if it is not valid."""
    rows = {example.id: row for example, row in job.finished()}
    for place, example in enumerate(job.examples(), 1):
        problem = _PROBLEM.fullmatch(example.id)
        row = rows.get(example.id)
        text = row.prediction["prediction"] if row and row.prediction else ""
        yield int(problem[1]) if problem else place, (example.id, _solution(text, example))


def _solution(text: str, example: Example) -> dict[str, JSON]:
    labels = labels_of(text)
    count = len(example.document.parts)
    if [len(labels[key]) for key in _LISTS] != [count - 1, count] or not labels["multi-author"]:
        return {}
    return {
        "multi-author": int(labels["multi-author"][0]),
        **{key: [int(label) for label in labels[key]] for key in _LISTS},
    }
