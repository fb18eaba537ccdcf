"""Result of a search: a config with the chosen pipeline and a record of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.config import PipelineSpec
from leporello.config.specs import shortened
from leporello.core import __version__
from leporello.core.records import JSON
from leporello.core.yaml.writing import write_yaml
from leporello.tuning.documents import Documents
from leporello.tuning.evaluation import Estimate, Evaluator

TUNED = "Chosen by `tune` on"  # in every file that it writes


@dataclass(frozen=True)
class Tuned:
    """Result of `tune`. The baseline is the pipeline as declared, without any choice.

    Attributes:
        pipeline: Name of the tuned pipeline.
        config: File that declares it.
        tasks: Names of the tasks.
        metrics: Name of the score of each task, by task.
        chosen: Chosen values by path; empty if the baseline was best.
        points: Number of points that were scored, including the baseline.
        stopped: Number of points that were stopped early.
        refused: Number of proposals that stages refused.
        documents: Number of documents that the points were chosen on.
        score: Mean of the tasks' scores on these documents.
        gain: Difference to the baseline on these documents.
        apart: Number of documents that were kept apart from the search.
        estimate: Mean of the tasks' scores on the documents kept apart.
        apart_gain: Difference to the baseline on the documents kept apart.
        optimism: Points by which `score` exceeds `estimate`.
        harder: Points by which the baseline scores lower on the documents kept apart, since they
            are harder; negative if they are easier.
        searches: Number of searches; if several, each document was kept apart from one of them.
        by_task: Scores of the baseline and the tuned pipeline on both sides, by task.
        front: Choices, score and cost of the Pareto front of points.
        seed: Seed of the division of documents and of the proposals.
        cost: Unit of the costs; empty if the search ignored them.
    """

    pipeline: str
    config: Path
    tasks: tuple[str, ...]
    metrics: Mapping[str, str]
    chosen: Mapping[str, float | str]
    points: int
    stopped: int
    refused: int
    documents: int
    score: float
    gain: Estimate
    apart: int
    estimate: Estimate
    apart_gain: Estimate
    optimism: float
    harder: float
    searches: int
    by_task: Mapping[str, Mapping[str, float]]
    front: tuple[Mapping[str, JSON], ...]
    seed: int
    cost: str = ""


def write_config(
    file: Path,
    result: Tuned,
    chosen: PipelineSpec,
    documents: Documents,
    evaluator: Evaluator,
) -> None:
    """Writes the chosen pipeline with all its parameters.

    Args:
        file: File to write or replace.
        result: Result of the search.
        chosen: Chosen pipeline.
        documents: Documents that it was chosen on.
        evaluator: Evaluator of the search, with the tasks and the account.
    """
    declared: dict[str, Any] = {
        "description": f"{TUNED} {', '.join(result.tasks)}",
        "tasks": [*result.tasks],
        **chosen.resolved(),
        "tuned": _record(result, documents, evaluator),
    }
    write_yaml(file, {"pipelines": {result.pipeline: declared}})


def _record(result: Tuned, documents: Documents, evaluator: Evaluator) -> dict[str, JSON]:
    account = evaluator.account
    return {
        "tasks": {name: _task(evaluator, name, documents[name]) for name in result.tasks},
        "chosen": {**result.chosen},
        "seed": result.seed,
        "budget": account.text,
        "seconds": round(account.spent.seconds, 1),
        "dollars": account.spent.dollars if account.is_priced else None,
        "points": result.points,
        "stopped_early": result.stopped,
        "searches": result.searches,
        "chosen_on": {
            "documents": result.documents,
            "score": result.score,
            "less_as_it_is": result.gain.row,
        },
        "kept_apart": {
            "documents": result.apart,
            "score": result.estimate.row,
            "less_as_it_is": result.apart_gain.row,
        },
        "optimism": result.optimism,
        "harder": result.harder,
        "front": [{**row} for row in result.front],
        "leporello": __version__,
    }


def _task(evaluator: Evaluator, name: str, documents: Sequence[str]) -> dict[str, JSON]:
    """Returns the task's data and metric, and the documents that the search used."""
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
