"""What a search leaves: a config with the pipeline that it chose, and how it came to be chosen."""

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
from leporello.tuning.estimates import Estimate
from leporello.tuning.evaluation import Evaluator


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        pipeline: Name of the pipeline that it wrote.
        config: File that declares it.
        tasks: Names of the tasks.
        metrics: Score of each task, by its name.
        chosen: What was chosen, by path; nothing where the pipeline as it is was best.
        points: Number of points that were scored, the pipeline as it is among them.
        stopped: Number of these that were stopped early.
        refused: Number of proposals that stages refused.
        documents: Number of documents chosen on.
        score: Mean of the tasks' scores on these.
        gain: Difference to the pipeline as it is, on these.
        apart: Number of documents that the search, or each search in its turn, never looked at.
        estimate: Mean of the tasks' scores on those.
        apart_gain: Difference to the pipeline as it is, on those.
        optimism: Points by which the score chosen on is higher than the estimate.
        harder: Points of these by which the pipeline as it is scores lower there too, since those
            documents are harder; negative where they are easier.
        searches: Number of searches; above one, each document was kept apart from one of them.
        by_task: Scores chosen on and kept apart, of the pipeline as it is and as tuned, by task.
        front: Choices, score and cost of the points than which none is better and not dearer.
        seed: Seed of documents and proposals.
        cost: Unit of the costs; empty where they did not count.
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
    found: Tuned,
    chosen: PipelineSpec,
    documents: Documents,
    evaluator: Evaluator,
) -> None:
    """Writes the chosen pipeline, every parameter written out.

    Args:
        file: The file, which is replaced.
        found: What the search found.
        chosen: The pipeline.
        documents: Documents that it was chosen on.
        evaluator: Evaluator that scored it: its tasks, and what was spent.
    """
    declared: dict[str, Any] = {
        "description": f"Chosen by `tune` on {', '.join(found.tasks)}",
        "tasks": [*found.tasks],
        **chosen.resolved(),
        "tuned": _record(found, documents, evaluator),
    }
    write_yaml(file, {"pipelines": {found.pipeline: declared}})


def _record(found: Tuned, documents: Documents, evaluator: Evaluator) -> dict[str, JSON]:
    account = evaluator.account
    return {
        "tasks": {name: _task(evaluator, name, documents[name]) for name in found.tasks},
        "chosen": {**found.chosen},
        "seed": found.seed,
        "budget": account.text,
        "seconds": round(account.spent.seconds, 1),
        "dollars": account.spent.dollars if account.is_priced else None,
        "points": found.points,
        "stopped_early": found.stopped,
        "searches": found.searches,
        "chosen_on": {
            "documents": found.documents,
            "score": found.score,
            "less_as_it_is": found.gain.row,
        },
        "kept_apart": {
            "documents": found.apart,
            "score": found.estimate.row,
            "less_as_it_is": found.apart_gain.row,
        },
        "optimism": found.optimism,
        "harder": found.harder,
        "front": [{**row} for row in found.front],
        "leporello": __version__,
    }


def _task(evaluator: Evaluator, name: str, documents: Sequence[str]) -> dict[str, JSON]:
    """Returns the task's data and metric, and which of its documents were chosen on."""
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
