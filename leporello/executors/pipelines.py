"""The pipelines of a batch, built in the process that works at its shards."""

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
from leporello.executors.interface import BatchSpec
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
        stages: Stages of the pipeline; equal ones of several pipelines are one object.
        metrics: Metrics of the task that are computed as it reads.
        normalise: Normaliser of the task.
        files: Files that it writes.
    """

    stages: Pipeline
    metrics: Mapping[str, Metric]
    normalise: Normalizer | None
    files: JobFiles


class Pipelines:
    """All pipelines of a batch, and the task's documents.

    Attributes:
        spec: The batch that they were built from.
        all: Pipelines by their places.
        directory: Directory of the run, on this machine.
        remote: The run at a URL, of which that is a copy; None if it is at none.
        tasks: Documents of the task.
        cache: Cache of what is derived; None caches nothing.
        worker: Name of this process and its machine.
    """

    def __init__(self, spec: BatchSpec) -> None:
        """Builds them; models load on first use.

        Raises:
            UserError: The source of a class is not what the run began with.
        """
        self.spec = spec
        self._check_sources()
        source = spec.built or spec.task.spec.build()
        self.remote = spec.remote and spec.remote.here()
        path = self.remote.directory if self.remote else spec.directory
        self.directory = RunDirectory(path)
        listed = metrics_of(spec.metrics).items()
        metrics = {name: metric for name, metric in listed if not is_later(metric)}
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
        classes = {spec.name: spec.cls for spec in self.spec.all_specs()}
        for name, expected in self.spec.sources.items():
            if source_hash(classes[name]) != expected:
                raise UserError(
                    f"{name} changed while the run was going on; --update does again what it"
                    " touches"
                )
