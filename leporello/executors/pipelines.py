"""Builds the pipelines of a batch in the process that runs its shards."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace

from leporello.cache.source_code import source_hash
from leporello.cache.store import Cache
from leporello.config import Pipeline
from leporello.config.metrics import metrics_of
from leporello.config.specs import StageFactory
from leporello.core.errors import UserError
from leporello.engine.task_examples import Normalizer, no_answer_of, normalizer_of
from leporello.executors.interface import JobGroupSpec
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.shards import TaskReader
from leporello.metrics import Metric
from leporello.metrics.protocol import is_later


def this_worker() -> str:
    """Returns the name of this process and its machine."""
    return f"{os.getpid()}@{platform.node()}"


@dataclass(frozen=True)
class WorkerPipeline:
    """One pipeline of a batch.

    Attributes:
        stages: Stages of the pipeline; pipelines share objects for equal stages.
        metrics: Metrics that are computed while the pipeline runs.
        normalise: Normaliser of the task.
    """

    stages: Pipeline
    metrics: Mapping[str, Metric]
    normalise: Normalizer | None
    files: JobFiles


class Pipelines:
    """Pipelines of a batch, and the task's documents.

    Attributes:
        spec: Group of jobs.
        all: Pipelines in the order of the batch.
        directory: Directory of the run on this machine.
        remote: Run at a URL, of which the directory is a copy; None for a local run.
        tasks: Reader of the task's documents.
        cache: Cache; None disables caching.
        worker: Name of this process and its machine.
    """

    def __init__(self, spec: JobGroupSpec) -> None:
        """Builds the pipelines; models load on first use.

        Raises:
            UserError: The source of a class has changed since the run started.
        """
        self.spec = spec
        self._check_sources()
        source = spec.built or spec.task.spec.build()
        self.remote = spec.remote and spec.remote.here()
        path = self.remote.directory if self.remote else spec.directory
        self.directory = RunDirectory(path)
        all_metrics = metrics_of(spec.metrics).items()
        metrics = {name: metric for name, metric in all_metrics if not is_later(metric)}
        # One factory, so pipelines of a sweep share a model in memory.
        factory = StageFactory()
        self.all = [
            WorkerPipeline(
                replace(factory.build(pipeline), no_answer=no_answer_of(source)),
                metrics,
                normalizer_of(source, wanted=pipeline.normalised),
                JobFiles(self.directory, pipeline.name, spec.task.name),
            )
            for pipeline in spec.pipelines
        ]
        self.tasks = TaskReader(source, spec.task.name)
        self.cache = Cache(spec.cache) if spec.cache else None
        self.worker = this_worker()

    def _check_sources(self) -> None:
        # Workers start later than the run, so an edit in between would mix two versions in its
        # results.
        classes = {spec.name: spec.cls for spec in self.spec.all_specs()}
        for name, expected in self.spec.sources.items():
            # A file edited during a run would give shards of one run different code.
            if source_hash(classes[name]) != expected:
                raise UserError(
                    f"{name} changed during the run; use --update to run again what depends on it"
                )
