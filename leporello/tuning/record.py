"""What a search leaves: a config with the pipeline that it chose, and how it came to be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello import __version__
from leporello.config import PipelineSpec
from leporello.config.specs import shortened
from leporello.core.records import JSON
from leporello.core.yaml.writing import write_yaml
from leporello.tuning.documents import Documents
from leporello.tuning.evaluation import Evaluator

if TYPE_CHECKING:
    from leporello.tuning.tune import Tuned


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
    apart: dict[str, JSON] = {
        "documents": found.apart,
        "score": _plain(found.estimate.row),
        "less_as_it_is": _plain(found.apart_gain.row),
    }
    account = evaluator.account
    return {
        "tasks": {name: _task(evaluator, name, documents[name]) for name in found.tasks},
        "chosen": {**found.chosen},
        "seed": found.seed,
        "budget": account.budget.text,
        "seconds": round(account.seconds, 1),
        "dollars": account.dollars,
        "points": found.points,
        "stopped_early": found.stopped,
        "searches": found.searches,
        "chosen_on": {
            "documents": found.documents,
            "score": found.score,
            "less_as_it_is": _plain(found.gain.row),
        },
        "kept_apart": apart,
        "optimism": found.optimism,
        "harder": found.harder,
        "front": [{**row} for row in found.front],
        "leporello": __version__,
    }


def _plain(row: Any) -> JSON:  # noqa: ANN401 -- numbers and lists of them
    plain: JSON = row
    return plain


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
