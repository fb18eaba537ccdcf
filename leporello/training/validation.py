"""Scores of the complete pipeline of a trained reader on the validation data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from leporello.cache.store import Cache
from leporello.config import PipelineSpec
from leporello.config.metrics import metrics_of
from leporello.config.placement import Placement
from leporello.core.errors import UserError
from leporello.engine.limits import Limits
from leporello.engine.task_examples import checked_metrics
from leporello.jobs.directory import RunDirectory
from leporello.jobs.interrupts import Interrupts
from leporello.jobs.jobs import Job, RunContext
from leporello.jobs.results import Result
from leporello.jobs.signature import job_signature
from leporello.runs.job_group import JobGroup
from leporello.training.splits import Splits


@dataclass(frozen=True)
class Evaluation:
    """Runs pipelines on the validation data.

    Attributes:
        splits: Training and validation data.
        limit: Maximum number of examples.
        cache: Cache of data derived from documents; None disables caching.
    """

    splits: Splits
    limit: int | None
    cache: Cache | None

    def check(self) -> None:
        """Reads the fingerprint and metrics of the validation data, before training starts.

        Raises:
            UserError: The data are missing or damaged, or a metric is invalid.
        """
        if self.splits.validation is not None:
            metrics_of(checked_metrics(self.splits.validation))
            self.splits.validation.fingerprint()

    @cached_property
    def headline(self) -> str:
        """Name of the score of the task's first metric; empty without metric or validation."""
        source = self.splits.validation
        metrics = metrics_of(checked_metrics(source)) if source is not None else {}
        return next((metric.headline for metric in metrics.values()), "")

    def score(self, result: Result) -> float:
        """Returns the score that choices are made by; a result without it ranks last."""
        return result.scores.get(self.headline, float("-inf"))

    def best(self, points: Sequence[PipelineSpec]) -> tuple[PipelineSpec, Result]:
        """Returns the first point with the highest score, and its result.

        Raises:
            UserError: Most examples failed, so the scores are meaningless.
        """
        results = [(point, self._run(point)) for point in points]
        # `max` keeps the first of equal points, so declared values win ties (decision 26).
        best, result = max(results, key=lambda pair: self.score(pair[1]))
        # Failures score 0, so with many of them all candidates have similar scores.
        if result.failures * 2 > result.examples:
            raise UserError(
                f"{result.failures} of {result.examples} examples failed on"
                f" {self.splits.validated}: run the untrained pipeline on some examples to see"
                " why"
            )
        return best, result

    def _run(self, point: PipelineSpec) -> Result:
        source = self.splits.validation
        assert source is not None
        signature = job_signature(
            point, self.splits.task, source.fingerprint(), self.splits.task.metrics_of(source)
        )
        job = Job(point, self.splits.task, source, signature, Placement(workers=0))
        with TemporaryDirectory() as folder, Interrupts() as interrupts:
            context = RunContext(
                # A temporary run: its results serve only the choice, and the cache keeps the
                # reader's outputs.
                RunDirectory(Path(folder)),
                Limits(),
                self.limit,
                cache=self.cache,
                check=lambda _: interrupts.check(),
                supervised=False,  # only this process has the validation data
            )
            group = JobGroup([job], context)
            group.run()
            [result] = group.close()
        return result


def scores_of(result: Result) -> Mapping[str, float]:
    """Returns all metrics, rounded for people."""
    return {name: round(value, 4) for name, value in result.scores.items()}
