"""Packs the data of the report's browser: an index per task, and examples in compressed pieces."""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leporello.analysis.example_trace import STAGES
from leporello.analysis.finished import finished_examples
from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.engine.results.finished import FinishedRow
from leporello.jobs.manifest import metrics_of_run
from leporello.metrics import Metric
from leporello.report.example_details import Detail, job_detail
from leporello.report.join import (
    ExampleFacts,
    JobRows,
    JoinedExample,
    Prompts,
    without_data,
)

_SHORT = 80  # characters of questions and predictions in a list
_PIECE = 100  # examples
_ABSENT, _DONE, _FAILED = 0, 1, 2
NOT_LOST, NO_PROOF = -1, -2
"""Values in place of the stage that lost an answer."""


@dataclass
class Packed:
    """The examples of one task."""

    task: str
    jobs: Sequence[JobRows]  # jobs that ran the examples
    index: str = ""  # packed index for the list of examples
    pieces: list[str] = field(default_factory=list)  # packed pieces of a hundred examples each
    ids: list[str] = field(default_factory=list)
    lengths: list[int | None] = field(default_factory=list)  # of the documents, in characters
    # Scores by job, then by metric; one per example, or None.
    scores: list[dict[str, list[float | None]]] = field(default_factory=list)
    confidences: list[list[float | None]] = field(default_factory=list)  # by job
    # By job and example, the index in `STAGES` of the losing stage, `NOT_LOST` or `NO_PROOF`.
    lost: list[list[int]] = field(default_factory=list)
    documents: set[str] = field(default_factory=set)  # SHA-256 of the documents
    notes: list[str] = field(default_factory=list)  # notes on omitted content, with reasons


def packed(value: JSON) -> str:
    """Returns JSON in a form that is safe in HTML: ASCII, compressed, base64."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    # Without a time stamp, so that equal reports have equal bytes.
    return b64encode(gzip.compress(text.encode("ascii"), 6, mtime=0)).decode("ascii")


def pack(
    task: str,
    jobs: Sequence[JobRows],
    metrics: Sequence[str],
    facts: ExampleFacts,
    *,
    characters: int,
    inputs: int,
) -> Packed:
    """Returns a task's examples, with excerpts of documents if the data still exist.

    Each example has this number of characters of excerpts; the first `inputs` examples are shown
    with their exact inputs.
    """
    scorers = metrics_of_run(jobs[0].job.signature, metrics)
    try:
        finished = finished_examples([job.job for job in jobs])
        rows = (JoinedExample(example.id, example, results) for example, results in finished)
        detail = Detail(jobs, characters, Prompts())
        return _Packing(Packed(task, jobs), scorers, facts, detail).pack(rows, inputs)
    except UserError as error:
        note = f"{task}: shown without its documents: {error}"
    detail = Detail(jobs, characters, Prompts())
    examples = _Packing(Packed(task, jobs), scorers, facts, detail).pack(without_data(jobs), 0)
    examples.notes.insert(0, note)
    return examples


class _Packing:
    def __init__(
        self, result: Packed, metrics: Mapping[str, Metric], facts: ExampleFacts, detail: Detail
    ) -> None:
        jobs = result.jobs
        self.result, self.metrics, self.facts, self.detail = result, metrics, facts, detail
        self.result.scores = [{name: [] for name in metrics} for _ in jobs]
        self.result.confidences = [[] for _ in jobs]
        self.questions: list[str] = []
        self.predictions: list[list[str]] = [[] for _ in jobs]
        self.states: list[list[int]] = [[] for _ in jobs]
        self.result.lost = [[] for _ in jobs]

    def pack(self, examples: Iterable[JoinedExample], inputs: int) -> Packed:
        """Packs the examples in one pass; the first `inputs` of them have exact inputs."""
        for number, example in enumerate(examples):
            self._add(example, exactly=number < inputs)
            if len(self.detail.examples) == _PIECE:
                self.result.pieces.append(packed(self.detail.take_piece()))
        if self.detail.examples:
            self.result.pieces.append(packed(self.detail.take_piece()))
        self.result.index = packed(self._index())
        self.result.notes += self.detail.prompts.notes
        return self.result

    def _add(self, example: JoinedExample, *, exactly: bool) -> None:
        details = [self._job(index, example.id, row) for index, row in enumerate(example.rows)]
        self.detail.add(example, details, exactly=exactly)
        self.result.ids.append(example.id)
        self.questions.append(example.example.question[:_SHORT] if example.example else "")
        self.result.lengths.append(_length(example))
        if example.example:
            self.result.documents.add(example.example.document.sha256)

    def _job(self, index: int, example: str, row: FinishedRow | None) -> dict[str, Any] | None:
        fact = self.facts.by_job.get(self.result.jobs[index].key, {}).get(example)
        # Without the proof, a reader may still know the answer or find it elsewhere.
        lost_at = fact.lost_at if fact and not fact.answered else ""
        scores = dict(self._scores(row)) if row else {}
        for name, column in self.result.scores[index].items():
            column.append(scores.get(name))
        answered = row if row and not row.statistics.abstained else None
        self.result.confidences[index].append(answered.statistics.confidence if answered else None)
        prediction = row.prediction if row else None
        self.predictions[index].append(prediction["prediction"][:_SHORT] if prediction else "")
        self.states[index].append(_ABSENT if row is None else _DONE if prediction else _FAILED)
        has_proof = fact is not None and fact.gold
        lost = STAGES.index(lost_at) if lost_at else NOT_LOST if has_proof else NO_PROOF
        self.result.lost[index].append(lost)
        return job_detail(row, scores, lost_at, self.detail.limits) if row else None

    def _scores(self, row: FinishedRow) -> Iterator[tuple[str, float]]:
        for name, metric in self.metrics.items():
            statistics = row.statistics.statistics.get(name)
            if statistics is not None:
                yield name, round(metric.score(statistics), 4)

    def _index(self) -> dict[str, Any]:
        result = self.result
        jobs = (
            {"label": j.label, "name": j.name, "run": str(j.key[0]), "pipeline": j.job.pipeline}
            for j in result.jobs
        )
        return {
            "task": result.task,
            "jobs": [*jobs],
            "metrics": [*self.metrics],
            "stages": [*STAGES],
            "piece": _PIECE,
            "ids": result.ids,
            "questions": self.questions,
            "predictions": self.predictions,
            "states": self.states,
            "lost": result.lost,
            "scores": [[[*columns[name]] for name in self.metrics] for columns in result.scores],
        }


def _length(example: JoinedExample) -> int | None:
    if example.example:
        return len(example.example.document.text)
    lengths = (
        row.statistics.coverage["document"] for row in example.rows if row and row.prediction
    )
    return next(lengths, None)
