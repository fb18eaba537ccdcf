"""Result of a search: a config with the chosen pipeline and a record of the search."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leporello.config import PipelineSpec
from leporello.config.specs import shortened
from leporello.core import __version__
from leporello.core.records import JSON
from leporello.core.yaml.scalars import write_yaml
from leporello.tuning.documents import Documents
from leporello.tuning.evaluation import Estimate, Evaluator

TUNED = "Chosen by `tune` on"  # in every file that it writes
_ELSEWHERE = ("pipeline", "config", "tasks", "metrics")  # fields that the file has in other places


@dataclass(frozen=True)
class Tuned:
    """Result of `tune`. The baseline is the pipeline as declared, without any choice."""

    pipeline: str  # name of the tuned pipeline
    config: Path  # file that declares it
    tasks: tuple[str, ...]  # names of the tasks
    metrics: Mapping[str, str]  # name of the score of each task, by task
    chosen: Mapping[str, float | str]  # chosen values by path; empty if the baseline was best
    points: int  # number of points that were scored, including the baseline
    stopped: int  # number of points that were stopped early
    refused: int  # number of proposals that stages refused
    documents: int  # number of documents that the points were chosen on
    score: float  # mean of the tasks' scores on these documents
    gain: Estimate  # difference to the baseline on these documents
    apart: int  # number of documents that were kept apart from the search
    estimate: Estimate  # mean of the tasks' scores on the documents kept apart
    apart_gain: Estimate  # difference to the baseline on the documents kept apart
    optimism: float  # points by which `score` exceeds `estimate`
    # Points by which the baseline scores lower on the documents kept apart; may be negative.
    harder: float
    searches: int  # number of searches; if several, each document was kept apart from one of them
    # Scores of the baseline and the tuned pipeline on both sides, by task.
    by_task: Mapping[str, Mapping[str, float]]
    front: tuple[Mapping[str, JSON], ...]  # choices, score and cost of the Pareto front of points
    seed: int  # seed of the division of documents and of the proposals
    cost: str = ""  # unit of the costs; empty if the search ignored them


def write_config(
    file: Path,
    result: Tuned,
    chosen: PipelineSpec,
    documents: Documents,
    evaluator: Evaluator,
) -> None:
    """Writes the chosen pipeline with all its parameters, and a record of its search."""
    declared: dict[str, Any] = {
        "description": f"{TUNED} {', '.join(result.tasks)}",
        "tasks": [*result.tasks],
        **chosen.resolved(),
        "tuned": _record(result, documents, evaluator),
    }
    write_yaml(file, {"pipelines": {result.pipeline: declared}})


def _record(result: Tuned, documents: Documents, evaluator: Evaluator) -> dict[str, JSON]:
    account = evaluator.account
    fields = {name: value for name, value in asdict(result).items() if name not in _ELSEWHERE}
    record: dict[str, JSON] = {
        **json.loads(json.dumps(fields)),
        "tasks": {name: _task(evaluator, name, documents[name]) for name in result.tasks},
        "budget": account.text,
        "seconds": round(account.spent.seconds, 1),
        "dollars": account.spent.dollars if account.is_priced else None,
        "leporello": __version__,
    }
    return record


def _task(evaluator: Evaluator, name: str, documents: Sequence[str]) -> dict[str, JSON]:
    task = evaluator.tasks[name]
    texts = {
        shortened(example.document.sha256) for key in documents for example in task.documents[key]
    }
    return {
        "data": task.data,
        "metric": task.metric.headline,
        "signature": task.metric.signature,
        "documents": [*sorted(texts)],
    }
