"""Executors: run shards in this process, in worker processes, or on a Ray cluster.

`worker.py` runs shards in every kind of process, `interface.py` defines its input and output. An
executor distributes orders and yields results. It may start processes and write to the run's
directory; the engine determines the results of a shard.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from leporello.config.placement import Placement
from leporello.executors.interface import JobGroupSpec
from leporello.executors.pool import LocalWorkers, Pool
from leporello.executors.worker import ShardWorker

__all__ = ["Executor", "executor_for"]

Executor: TypeAlias = ShardWorker | Pool

_log = logging.getLogger("leporello")


def executor_for(
    spec: JobGroupSpec,
    placement: Placement,
    model_bytes: int,
    check: Callable[[], None],
    *,
    supervised: bool = True,
) -> Executor:
    """Returns the executor for a group of jobs, whose workers load models of `model_bytes`.

    `check` raises `Stopped` to end the run. If `supervised`, a group with 0 workers uses one worker
    if plug-ins or a time limit require a process that can be killed.
    """
    # Workers build the task again: it may hold open files, and may not survive pickling.
    sent = replace(spec, built=None)
    if placement.executor == "ray":
        from leporello.executors.ray.workers import RayWorkers

        return Pool(RayWorkers(sent, placement), check)
    count = placement.count(model_bytes)
    # An existing kind of worker, not a process around each command. That process would have to
    # relay signals, and its death would leave the inner process running (decision 40).
    if count == 0 and not (supervised and (reason := spec.reason_to_supervise())):
        return ShardWorker(spec, check)
    if count == 0:
        _log.info("%s: using a worker process (--unsupervised uses this process)", reason)
    return Pool(LocalWorkers(sent, placement, count or 1), check)
