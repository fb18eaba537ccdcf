"""The curves of a training: losses as they were measured, and what checkpoints score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leporello.training.fine_tuning import RateResult

_SCORE = "validation_score"


def curves_of(
    results: Sequence[RateResult], scores: Sequence[float]
) -> dict[str, Sequence[Mapping[str, float]]]:
    """Returns the curve of each learning rate, with the scores of its checkpoints if there are."""
    curves = {f"{result.rate:g}": [*result.tuning.curve] for result in results}
    for result, score in zip(results, scores, strict=bool(scores)):
        checkpoint = result.checkpoint
        row = {"step": checkpoint.step, "epoch": checkpoint.epoch, _SCORE: score}
        curves[f"{result.rate:g}"].append(row)
    return {**curves}


def write_scores(
    folder: Path, metric: str, curves: Mapping[str, Sequence[Mapping[str, float]]]
) -> None:
    """Writes what checkpoints score for TensorBoard, beside the losses, as `eval/METRIC`.

    Args:
        folder: A folder that has one for each learning rate, in which no scores are yet.
        metric: Name of the metric that checkpoints are scored by.
        curves: Rows of each curve, by learning rate.
    """
    for rate, rows in curves.items():
        points = [row for row in rows if _SCORE in row]
        if points:
            _write(folder / f"rate-{rate}", f"eval/{metric}", points)


def _write(folder: Path, tag: str, points: Sequence[Mapping[str, float]]) -> None:
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = SummaryWriter
    with writer(str(folder)) as file:
        for row in points:
            file.add_scalar(tag, row[_SCORE], int(row["step"]))
