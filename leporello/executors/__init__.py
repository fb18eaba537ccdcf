"""Where shards are worked at: in this process, in processes beside it, or on a Ray cluster.

`worker.py` is what works at shards wherever it stands, `interface.py` what it is handed and what
comes back. An executor is thin: it hands orders out, and yields results. It may start processes and
write below a run's directory; what a shard's results are is the engine's business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from leporello.config.placement import Placement
from leporello.executors.interface import BatchSpec
from leporello.executors.local import InProcess, LocalWorkers
from leporello.executors.pool import Pool

__all__ = ["Executor", "executor_for"]

Executor: TypeAlias = InProcess | Pool

_log = logging.getLogger("leporello")


def executor_for(
    spec: BatchSpec,
    placement: Placement,
    model_bytes: int,
    check: Callable[[], None],
    *,
    supervised: bool = True,
) -> Executor:
    """Returns where a batch is worked at.

    Args:
        spec: The batch that is to be run.
        placement: Placement of its workers.
        model_bytes: Size of the models that each worker loads.
        check: Function that is called now and then; raises `Stopped` if the run is to end.
        supervised: Whether a batch for 0 workers gets one all the same where code of somebody
            else, or a time limit, needs a process that may be ended.
    """
    if placement.executor == "ray":
        from leporello.executors.ray.workers import RayWorkers

        return Pool(spec, RayWorkers(spec, placement), check)
    count = placement.count(model_bytes)
    if count == 0 and not (supervised and (reason := spec.reason_to_supervise())):
        return InProcess(spec, check)
    if count == 0:
        _log.info("%s: a process beside this one works at it (--unsupervised: this one)", reason)
    spec = replace(spec, built=None)
    return Pool(spec, LocalWorkers(spec, placement, count or 1), check)
